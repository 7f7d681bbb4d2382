import { BoundedMap } from '../actor/bounded-map.js'
import { type Environment, openEnvironment, present, type Table } from '../store/lmdb.js'
import { decodeAccount, encodeAccount, type LedgerAccount } from './account.js'
import type { Books, LedgerEntries } from './judge.js'
import { isKey, type LedgerRecord, type RecordChange, type SignedHead } from './port.js'
import { chained, decodeTransfer, encodeTransfer, firstHead, putNumber, type Transfer } from './transfer.js'

const bytesOf = (value: string): Buffer => Buffer.from(value)

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}

function number(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  putNumber(bytes, value, 0)
  return bytes
}

/** A text and a number behind it, as one key. */
function numbered(text: string, value: number): Buffer {
  const bytes = Buffer.allocUnsafe(text.length * 3 + 8)
  const end = bytes.write(text)
  putNumber(bytes, value, end)
  return bytes.subarray(0, end + 8)
}

function numberOf(bytes: Uint8Array, at = 0): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4)
}

function recordKey(kind: string, key: string): Buffer {
  return bytesOf(`${kind}\0${key}`)
}

/** Of the highest byte: behind every key of UTF-8 that begins so. */
function behind(start: Buffer): Buffer {
  return Buffer.concat([start, Uint8Array.of(0xff)])
}

const keptMax = 50_000
const stateKey = bytesOf('state')

interface State {
  readonly sequence: number
  readonly version: number
  /** Hex. */
  readonly head: string
}

/** The tables of the embedded ledger. Reads at any time; writes inside `write` only, by one thread. */
export class LmdbBooks implements Books {
  sequence = 0
  head = firstHead
  #version = 0
  readonly #environment: Environment
  readonly #transfers: Table
  readonly #ids: Table
  readonly #accounts: Table
  readonly #endings: Table
  readonly #due: Table
  readonly #entries: Table
  readonly #records: Table
  readonly #heads: Table
  readonly #meta: Table
  /** Busy accounts and what is pending on them are not read again from the tables. */
  readonly #keptAccounts = new BoundedMap<string, LedgerAccount>(keptMax)
  readonly #keptPending = new BoundedMap<string, Transfer>(keptMax)
  /** Changed by this transaction. */
  #changed = new Map<string, LedgerAccount>()

  constructor(path: string) {
    const environment = openEnvironment(path)
    this.#environment = environment
    this.#transfers = environment.table('transfers')
    this.#ids = environment.table('ids')
    this.#accounts = environment.table('accounts')
    this.#endings = environment.table('endings')
    this.#due = environment.table('due')
    this.#entries = environment.table('entries')
    this.#records = environment.table('records')
    this.#heads = environment.table('heads')
    this.#meta = environment.table('meta')
    this.#readState()
  }

  account(name: string): LedgerAccount | undefined {
    const kept = this.#changed.get(name) ?? this.#keptAccounts.get(name)
    if (kept !== undefined) return kept
    if (!isKey(name)) return undefined
    const found = this.#accounts.get(bytesOf(name))
    return found === undefined ? undefined : decodeAccount(name, textOf(found))
  }

  *accounts(start: string, after: string, limit: number): Iterable<LedgerAccount> {
    const first = bytesOf(start)
    const from = after === '' ? first : Buffer.concat([bytesOf(after), Uint8Array.of(0)])
    for (const { key, value } of this.#accounts.span({ start: from, end: behind(first), limit }))
      yield decodeAccount(textOf(key), textOf(value))
  }

  transfer(id: string): Transfer | undefined {
    const kept = this.#keptPending.get(id)
    if (kept !== undefined) return kept
    const found = this.#ids.get(bytesOf(id))
    return found === undefined ? undefined : this.at(numberOf(found))
  }

  /** The transfer of that number. */
  at(sequence: number): Transfer | undefined {
    const found = this.#transfers.get(number(sequence))
    return found === undefined ? undefined : decodeTransfer(sequence, textOf(found))
  }

  /** All transfers in order, as they are stored. */
  *all(): Iterable<{ sequence: number; text: string }> {
    for (const { key, value } of this.#transfers.span({}))
      yield { sequence: numberOf(key), text: textOf(value) }
  }

  isEnded(pendingId: string): boolean {
    // What is kept is pending still: its end takes it out.
    if (this.#keptPending.has(pendingId)) return false
    return this.#endings.get(bytesOf(pendingId)) !== undefined
  }

  ending(pendingId: string): Transfer | undefined {
    const found = this.#endings.get(bytesOf(pendingId))
    return found === undefined ? undefined : this.at(numberOf(found))
  }

  history(account: string, before: number, limit: number): Transfer[] {
    const start = bytesOf(`${account}\0`)
    // A span that goes backwards begins at the entry at or before its start, so the number below the bound.
    const from = Buffer.concat([start, number(Math.max(0, before - 1))])
    const found: Transfer[] = []
    for (const key of this.#entries.keys({ start: from, end: start, backwards: true, limit })) {
      const transfer = this.at(numberOf(key, key.length - 8))
      if (transfer !== undefined) found.push(transfer)
    }
    return found
  }

  record(kind: string, key: string): LedgerRecord | undefined {
    const found = isKey(key, kind) ? this.#records.get(recordKey(kind, key)) : undefined
    return found === undefined ? undefined : recordOf(kind, key, found)
  }

  records(kind: string, start: string, after: string, limit: number): LedgerRecord[] {
    if (!isKey(start, kind) || !isKey(after, kind)) return []
    const first = recordKey(kind, start)
    const from = after === '' ? first : Buffer.concat([recordKey(kind, after), Uint8Array.of(0)])
    const lead = kind.length + 1
    const found: LedgerRecord[] = []
    for (const { key, value } of this.#records.span({ start: from, end: behind(first), limit }))
      found.push(recordOf(kind, textOf(key).slice(lead), value))
    return found
  }

  /** Ids of what is pending and over at this time. */
  due(nowMs: number, limit: number): Transfer[] {
    const found: Transfer[] = []
    for (const key of this.#due.keys({ end: number(nowMs + 1), limit })) {
      const transfer = this.at(numberOf(key, 8))
      if (transfer !== undefined) found.push(transfer)
    }
    return found
  }

  /** Runs `act` in one transaction; where it throws, nothing of it is there. */
  write<T>(act: () => T): T {
    try {
      const made = this.#environment.write(() => {
        const result = act()
        for (const [name, account] of this.#changed)
          this.#accounts.put(bytesOf(name), bytesOf(encodeAccount(account)))
        const { sequence, head } = this
        const state: State = { sequence, version: this.#version, head: Buffer.from(head).toString('hex') }
        this.#meta.put(stateKey, bytesOf(JSON.stringify(state)))
        return result
      })
      for (const [name, account] of this.#changed) this.#keptAccounts.set(name, account)
      this.#changed = new Map()
      this.#environment.refresh()
      return made
    } catch (error) {
      this.#changed = new Map()
      this.#keptAccounts.clear()
      this.#keptPending.clear()
      this.#readState()
      throw error
    }
  }

  /** Writes what was judged. Only inside `write`. */
  apply({ transfers, accounts, records }: LedgerEntries): void {
    for (const transfer of transfers) this.#add(transfer)
    for (const account of accounts) this.#changed.set(account.name, account)
    for (const change of records) this.#change(change)
  }

  flushed(): Promise<void> {
    return this.#environment.flushed()
  }

  putHead(head: SignedHead): void {
    this.#environment.write(() => this.#heads.put(number(head.sequence), bytesOf(JSON.stringify(head))))
  }

  signedHeads(): SignedHead[] {
    return [...this.#heads.span({})].map(({ value }) => JSON.parse(textOf(value)) as SignedHead)
  }

  lastSigned(): SignedHead | undefined {
    const [last] = this.#heads.span({ backwards: true, limit: 1 })
    return last === undefined ? undefined : (JSON.parse(textOf(last.value)) as SignedHead)
  }

  close(): Promise<void> {
    return this.#environment.close()
  }

  #readState(): void {
    const found = this.#meta.get(stateKey)
    const state = found === undefined ? undefined : (JSON.parse(textOf(found)) as State)
    this.sequence = state?.sequence ?? 0
    this.#version = state?.version ?? 0
    this.head = state === undefined ? firstHead : Buffer.from(state.head, 'hex')
  }

  #add(transfer: Transfer): void {
    const { sequence, id, kind, debit, credit, untilMs, pending } = transfer
    const text = encodeTransfer(transfer)
    const key = number(sequence)
    const { head, bytes } = chained(this.head, sequence, text)
    this.#transfers.append(key, bytes)
    this.#ids.put(bytesOf(id), key)
    this.head = head
    this.sequence = sequence
    if (kind === 'post' || kind === 'void') {
      this.#endings.put(bytesOf(pending), key)
      const held = this.transfer(pending)
      if (held !== undefined && held.untilMs !== 0)
        this.#due.remove(Buffer.concat([number(held.untilMs), number(held.sequence)]))
      this.#keptPending.delete(pending)
      return
    }
    this.#entries.put(numbered(`${debit}\0`, sequence), present)
    this.#entries.put(numbered(`${credit}\0`, sequence), present)
    if (untilMs !== 0) this.#due.put(Buffer.concat([number(untilMs), key]), present)
    if (kind === 'pending') this.#keptPending.set(id, transfer)
  }

  #change({ kind, key, value }: RecordChange): void {
    const place = recordKey(kind, key)
    this.#version += 1
    if (value === undefined) this.#records.remove(place)
    else this.#records.put(place, Buffer.concat([number(this.#version), bytesOf(value)]))
  }
}

function recordOf(kind: string, key: string, stored: Uint8Array): LedgerRecord {
  return { kind, key, version: numberOf(stored), value: textOf(stored.subarray(8)) }
}
