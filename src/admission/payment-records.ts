import { randomUUID } from 'node:crypto'
import { type Environment, openEnvironment, present, type Table } from '../store/lmdb.js'
import type { PaymentOrder } from './cashier-messages.js'

/** The record of one payment. Written before its settlement is requested. */
export interface PaymentRecord extends Omit<PaymentOrder, 'message' | 'signature' | 'signed' | 'asker'> {
  /** Absent in records of older releases. */
  readonly signed?: string
  /** The name under which it was found to be ours (`PaymentOwners`). Absent in records of older releases. */
  readonly owner?: string
  /** `asked` (the word on disk): its settlement was requested at `askedMs` (Unix time), and the money may have moved. */
  readonly state: 'asked' | 'settled' | 'failed'
  readonly askedMs: number
  readonly endedMs?: number
  readonly transaction?: string
  readonly reason?: string
  /** It failed, but an earlier attempt had no answer: the money may have moved all the same. */
  readonly doubtful?: boolean
  /** Doubtful: its nonce was used, and by none who fill the same buckets. The transfer may be of another seller. */
  readonly isStray?: true
  /** The money is with its beneficiary. */
  readonly credited?: boolean
  /** Another service settled it, and nobody here knows what it paid: the payer may have signed another amount as well. */
  readonly isAmountUnchecked?: true
  /** The body for the facilitator, kept while it may have to be sent again. */
  readonly message?: string
}

/** What is recorded when a settlement is requested. `signed`: absent where nobody here has checked the signature. */
export type RequestedOrder = Omit<PaymentOrder, 'signed'> &
  Partial<Pick<PaymentOrder, 'signed'>> &
  Pick<PaymentRecord, 'owner' | 'isAmountUnchecked'>

/** A payment as the operator sees it: no signature, nothing that could be used. `client`: the beneficiary. */
export interface PaymentRow
  extends Omit<PaymentRecord, 'message' | 'digest' | 'signed' | 'owner' | 'beneficiary'> {
  readonly client: string
}

const payments = 'payments'
/** When it was requested (48 bits) and the payment's name: for the list, and for forgetting the oldest. */
const journal = 'journal'
/** Names of the payments whose settlement was requested and has not ended. */
const open = 'open'
/** Keys of the journal of payments that were refused clearly: nothing of them moved. */
const refused = 'refused'
/** Names of the payments that failed, and may have moved all the same; without strays. */
const doubtful = 'doubtful'
/** The name of these records among gateways. */
const own = 'own'

const nameOf = (payment: string): Uint8Array => Buffer.from(payment)

function journalKey({ askedMs, payment }: PaymentRecord): Uint8Array {
  const time = Buffer.alloc(6)
  time.writeUIntBE(askedMs, 0, 6)
  return Buffer.concat([time, nameOf(payment)])
}

/** A payment is remembered for a week after the request: far longer than it could be settled again. */
const keptMs = 7 * 24 * 3600_000
/** Payments that were refused clearly cost nothing: they have this part of the table, and the oldest of them are forgotten. */
const refusedPart = 1 / 10
/** Records that are looked at for each one that may be forgotten. */
const lookedFor = 20

/** One record per payer and nonce, in an LMDB environment of its own. Any thread reads; the cashier's thread writes. */
export class PaymentRecords {
  readonly #environment: Environment
  readonly #payments: Table
  readonly #journal: Table
  readonly #open: Table
  readonly #refused: Table
  readonly #doubtful: Table
  readonly #own: Table

  /** `recordsMax`: a million records take about 500 MB. */
  constructor(
    path: string,
    private readonly recordsMax = 1_000_000,
  ) {
    this.#environment = openEnvironment(path)
    this.#payments = this.#environment.table(payments)
    this.#journal = this.#environment.table(journal)
    this.#open = this.#environment.table(open)
    this.#refused = this.#environment.table(refused)
    this.#doubtful = this.#environment.table(doubtful)
    this.#own = this.#environment.table(own)
  }

  /** The name of these records among gateways: made at the first call, which only the cashier's thread may do. */
  name(): string {
    const key = nameOf('name')
    const known = this.#own.get(key)
    if (known !== undefined) return Buffer.from(known).toString()
    const name = randomUUID()
    this.#environment.write(() => this.#own.put(key, Buffer.from(name)))
    return name
  }

  /** The name that gateways with the same Redis had in common last; undefined: none is known. */
  commonName(): string | undefined {
    const known = this.#own.get(nameOf('common'))
    return known === undefined ? undefined : Buffer.from(known).toString()
  }

  /** Keeps that name for the next start. */
  keepCommonName(name: string): void {
    this.#environment.write(() => this.#own.put(nameOf('common'), Buffer.from(name)))
  }

  find(payment: string): PaymentRecord | undefined {
    const found = this.#payments.get(nameOf(payment))
    return found === undefined ? undefined : readPaymentRecord(Buffer.from(found).toString())
  }

  /** Records that the settlement is about to be requested. Undefined: the table is full of payments that are still good. */
  recordRequest(order: RequestedOrder, nowMs: number): PaymentRecord | undefined {
    if (this.#payments.count() >= this.recordsMax) this.forget(nowMs, 64)
    if (this.#payments.count() >= this.recordsMax) return undefined
    const { signature, asker, ...facts } = order
    const record = { state: 'asked', ...facts, askedMs: nowMs } as const
    this.#put(record)
    return record
  }

  /** Takes over the record of a payment that another service requested, in place of the own record. */
  adopt(record: PaymentRecord): PaymentRecord {
    const before = this.find(record.payment)
    this.#environment.write(() => {
      if (before !== undefined) this.#remove(journalKey(before), before.payment)
      this.#put(record)
    })
    return record
  }

  /** Resolves when all that was recorded so far would survive a power cut. */
  flushed(): Promise<void> {
    return this.#environment.flushed()
  }

  /** Replaces a record by its final state, without the body for the facilitator, which is not needed any more. */
  end(record: PaymentRecord, change: Partial<PaymentRecord>): PaymentRecord {
    const { message, ...rest } = record
    const ended = { ...rest, ...change }
    this.#put(ended)
    return ended
  }

  /** Removes a record whose settlement was never requested after all. */
  drop(record: PaymentRecord): void {
    this.#environment.write(() => {
      this.#open.remove(nameOf(record.payment))
      this.#remove(journalKey(record), record.payment)
    })
  }

  /** Payments whose settlement was requested and never ended, or never credited: the process ended first. */
  unended(): PaymentRecord[] {
    const names = [...this.#open.keys({})].map((key) => Buffer.from(key).toString())
    return names.flatMap((name) => this.find(name) ?? [])
  }

  /** `limit` payments that failed in doubt, strays left out, behind `after` in the order of their names. */
  doubtful(after: string, limit: number): PaymentRecord[] {
    return this.#doubtfulNames(after, limit).flatMap((name) => this.find(name) ?? [])
  }

  /** Whether a payer has so many of them. The name of a payment begins with its chain and payer. */
  hasDoubtful({ payment }: Pick<PaymentRecord, 'payment'>, count: number): boolean {
    const payer = payment.slice(0, payment.lastIndexOf(':') + 1)
    return this.#doubtfulNames(payer, count).filter((name) => name.startsWith(payer)).length >= count
  }

  #doubtfulNames(after: string, limit: number): string[] {
    const start = Buffer.concat([nameOf(after), Buffer.of(0)])
    return [...this.#doubtful.keys({ start, limit })].map((key) => Buffer.from(key).toString())
  }

  /** The last payments, youngest first. */
  recent(max: number): PaymentRow[] {
    this.#environment.refresh()
    const keys = [...this.#journal.keys({ backwards: true, limit: max })]
    return keys.flatMap((key) => {
      const found = this.find(Buffer.from(key.subarray(6)).toString())
      if (found === undefined) return []
      const { message, digest, signed, owner, beneficiary: client, ...row } = found
      return [{ ...row, client }]
    })
  }

  /**
   * A page of payments that are settled and credited, with amounts that are known, the oldest first, out of `limit` records.
   * `after`: of the page before; `next` is absent behind the last one.
   */
  credited(
    after: Uint8Array | undefined,
    limit: number,
  ): { readonly records: readonly PaymentRecord[]; readonly next?: Uint8Array } {
    const start = after === undefined ? {} : { start: Buffer.concat([after, Buffer.of(0)]) }
    const keys = [...this.#journal.keys({ ...start, limit })].map((key) => Buffer.from(key))
    const found = keys.flatMap((key) => this.find(key.subarray(6).toString()) ?? [])
    const isOwn = ({ state, credited, isAmountUnchecked }: PaymentRecord): boolean =>
      state === 'settled' && credited === true && isAmountUnchecked !== true
    const records = found.filter(isOwn)
    const last = keys.length < limit ? undefined : keys.at(-1)
    return { records, ...(last === undefined ? {} : { next: last }) }
  }

  /** Forgets the oldest records that are of no use any more, `max` at most; all of them where the table is full. */
  forget(nowMs: number, max: number): number {
    const full = this.#payments.count() >= this.recordsMax
    const isOver = (record: PaymentRecord): boolean => {
      const late = record.validBefore * 1000 + 3600_000 < nowMs && !isOpen(record)
      return late && (full || record.askedMs + keptMs < nowMs)
    }
    const old: { key: Uint8Array; payment: string }[] = []
    // Those that are still open may be the oldest: what lies behind them must not wait for them.
    let looked = 0
    for (const key of this.#journal.keys({})) {
      if (old.length >= max || looked >= lookedFor * max) break
      looked += 1
      const payment = Buffer.from(key.subarray(6)).toString()
      const record = this.find(payment)
      if (record === undefined || isOver(record)) old.push({ key, payment })
    }
    this.#environment.write(() => {
      for (const { key, payment } of old) this.#remove(key, payment)
    })
    return old.length
  }

  /** `key`: of the journal. */
  #remove(key: Uint8Array, payment: string): void {
    this.#journal.remove(key)
    this.#refused.remove(key)
    this.#doubtful.remove(nameOf(payment))
    this.#payments.remove(nameOf(payment))
  }

  close(): Promise<void> {
    return this.#environment.close()
  }

  #put(record: PaymentRecord): void {
    this.#environment.write(() => {
      const name = nameOf(record.payment)
      this.#payments.put(name, Buffer.from(paymentRecordText(record)))
      this.#journal.put(journalKey(record), present)
      if (isOpen(record)) this.#open.put(name, present)
      else this.#open.remove(name)
      const isDoubtful = record.state === 'failed' && record.doubtful === true
      if (isDoubtful && record.isStray !== true) this.#doubtful.put(name, present)
      else this.#doubtful.remove(name)
      if (record.state === 'failed' && !isDoubtful) this.#putRefused(record)
    })
  }

  // Whoever brings a forgotten one again has it refused again.
  #putRefused(record: PaymentRecord): void {
    this.#refused.put(journalKey(record), present)
    if (this.#refused.count() <= this.recordsMax * refusedPart) return
    for (const key of [...this.#refused.keys({ limit: 1 })])
      this.#remove(key, Buffer.from(key.subarray(6)).toString())
  }
}

/** Whether something is still to be done for it: its settlement may be under way, or it was settled and nothing was credited. */
function isOpen({ state, credited }: PaymentRecord): boolean {
  return state === 'asked' || (state === 'settled' && credited === false)
}

type StoredRecord = Omit<PaymentRecord, 'beneficiary'> & { readonly client: string }

/** A record as JSON, as it is stored here and in the ledger of payment services. There `beneficiary` is called `client`. */
export function paymentRecordText({ beneficiary: client, ...facts }: PaymentRecord): string {
  return JSON.stringify({ ...facts, client } satisfies StoredRecord)
}

/** Reads such a text. */
export function readPaymentRecord(text: string): PaymentRecord {
  const { client: beneficiary, ...facts } = JSON.parse(text) as StoredRecord
  return { ...facts, beneficiary }
}
