import type { Writable } from '../format/writable.js'
import type { HeadKey } from './head-key.js'
import { encodeAccount, type LedgerAccount, newAccount } from './ledger-account.js'
import type { Place } from './ledger-blocks.js'
import type { LedgerReport, SignedHead } from './ledger-port.js'
import { decodeTransfer, firstHead, nextHead, type Transfer } from './transfer.js'

/** Faults that are listed; others are counted. */
const faultsMax = 100

/** How many transfers a history has, and which, in their order. */
interface HistorySum {
  count: number
  sum: number
}

/** A prime: the sum times 31 stays a whole number. */
const sumMax = 2 ** 31 - 1

function counted(sums: Map<string, HistorySum>, account: string, { sequence, index }: Place): void {
  const entry = (sequence + index * 1_000_003) % sumMax
  const found = sums.get(account)
  if (found === undefined) sums.set(account, { count: 1, sum: entry })
  else {
    found.count += 1
    found.sum = (found.sum * 31 + entry) % sumMax
  }
}

type Sums = Writable<LedgerAccount>

/** Computes all accounts anew from the transfers, and compares. Takes memory by the number of accounts and pending transfers. */
export class Auditor {
  readonly #accounts = new Map<string, Sums>()
  readonly #pending = new Map<string, Transfer>()
  /** When each pending transfer is over, by its sequence. */
  readonly #due = new Map<number, { readonly untilMs: number; readonly index: number }>()
  readonly #faults: string[] = []
  readonly #heads: Map<number, SignedHead>
  /** What the histories of accounts must have, by account. */
  readonly #histories = new Map<string, HistorySum>()
  readonly #listed = new Map<string, HistorySum>()
  #head = firstHead
  #sequence = 0
  #timeMs = 0

  /** `key`: signed the heads; absent: they are compared, but their signatures are not checked. */
  constructor(
    private readonly signed: readonly SignedHead[],
    private readonly key?: Pick<HeadKey, 'hasSigned'>,
  ) {
    this.#heads = new Map(signed.map((one) => [one.sequence, one]))
  }

  fault(text: string): void {
    if (this.#faults.length < faultsMax) this.#faults.push(text)
  }

  /** Something of the ledger cannot be read. */
  unreadable(error: unknown): void {
    this.fault(`it cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }

  /** An entry of the history of an account, as it is stored; those of one account in their order. */
  listed(account: string, place: Place): void {
    counted(this.#listed, account, place)
  }

  /** A pending transfer that is found by its time, as it is stored. `isEnded`: how it ended waits beside the table. */
  timed({ sequence, index }: Place, untilMs: number, isEnded: boolean): void {
    if (isEnded) return
    const known = this.#due.get(sequence)
    this.#due.delete(sequence)
    if (known?.untilMs !== untilMs || known.index !== index)
      this.fault(`transfer ${sequence} is found as one that ends at ${untilMs}, and is none`)
  }

  /** The state, as it is stored, behind all transfers. */
  state(sequence: number, head: string): void {
    if (sequence !== this.#sequence || head !== this.#head)
      this.fault(`the state says ${sequence} transfers that end in ${head}, and they end in ${this.#head}`)
  }

  /** Ids of what is pending, behind all transfers. */
  pending(): Iterable<string> {
    return this.#pending.keys()
  }

  /** The sum of all records as it was stored, and as it is computed from them. */
  records(stored: string, computed: string): void {
    if (stored !== computed) this.fault('the records are not those that were written')
  }

  /** The transfers in their order, as they are stored. `index`: in its block, where there are blocks. */
  take(sequence: number, text: string, index = 0): Transfer {
    if (sequence !== this.#sequence + 1) this.fault(`transfer ${this.#sequence + 1} is missing`)
    this.#sequence = sequence
    this.#head = nextHead(this.#head, sequence, text)
    const signed = this.#heads.get(sequence)
    if (signed !== undefined && signed.head !== this.#head)
      this.fault(`the transfers up to ${sequence} are not those that were signed`)
    const transfer = decodeTransfer(sequence, text)
    if (transfer.timeMs < this.#timeMs) this.fault(`transfer ${sequence} is older than the one before it`)
    this.#timeMs = transfer.timeMs
    this.#apply(transfer, { sequence, index })
    return transfer
  }

  /** Compares with the accounts as they are stored: all of them. */
  report(stored: Iterable<LedgerAccount>): LedgerReport {
    let accounts = 0
    let sum = 0n
    const unseen = new Set(this.#accounts.keys())
    for (const account of stored) {
      accounts += 1
      unseen.delete(account.name)
      sum += account.creditsPosted - account.debitsPosted
      const computed = this.#accounts.get(account.name)
      if (computed === undefined) this.fault(`no transfer touches the account ${account.name}`)
      else if (encodeAccount(computed) !== encodeAccount(account))
        this.fault(
          `${account.name} has ${encodeAccount(account)}, its transfers make ${encodeAccount(computed)}`,
        )
    }
    for (const name of unseen) this.fault(`the account ${name} is missing`)
    if (sum !== 0n) this.fault(`all accounts together hold ${sum}, not 0`)
    for (const name of new Set([...this.#histories.keys(), ...this.#listed.keys()])) {
      const [made, found] = [this.#histories.get(name), this.#listed.get(name)]
      if (made?.count !== found?.count || made?.sum !== found?.sum)
        this.fault(
          `the history of ${name} has ${found?.count ?? 0} transfers, and they are not its ${made?.count ?? 0}`,
        )
    }
    for (const sequence of this.#due.keys()) this.fault(`transfer ${sequence} is not found by its time`)
    this.#checkHeads()
    return {
      transfers: this.#sequence,
      accounts,
      signedHeads: this.signed.length,
      head: this.#head,
      faults: this.#faults,
    }
  }

  #checkHeads(): void {
    for (const signed of this.signed) {
      const { sequence } = signed
      if (sequence > this.#sequence)
        this.fault(`transfers up to ${sequence} were signed, but there are fewer`)
      if (this.key?.hasSigned(signed) === false)
        this.fault(`the signature over the head at ${sequence} is wrong`)
    }
  }

  #account(name: string, timeMs: number): Sums {
    const found = this.#accounts.get(name) ?? { ...newAccount(name, timeMs) }
    this.#accounts.set(name, found)
    return found
  }

  #apply(transfer: Transfer, place: Place): void {
    const { kind, debit, credit, amount, timeMs, id, sequence } = transfer
    const giver = this.#account(debit, timeMs)
    const taker = this.#account(credit, timeMs)
    if (kind === 'pending' || kind === 'posted') {
      counted(this.#histories, debit, place)
      counted(this.#histories, credit, place)
    }
    if (kind === 'pending') {
      this.#pending.set(id, transfer)
      if (transfer.untilMs !== 0) this.#due.set(sequence, { untilMs: transfer.untilMs, index: place.index })
      giver.debitsPending += amount
      taker.creditsPending += amount
      return
    }
    if (kind !== 'posted') {
      const pending = this.#pending.get(transfer.pending)
      this.#pending.delete(transfer.pending)
      if (pending === undefined) this.fault(`transfer ${sequence} ends what is not pending`)
      else this.#due.delete(pending.sequence)
      giver.debitsPending -= pending?.amount ?? 0n
      taker.creditsPending -= pending?.amount ?? 0n
    }
    if (kind === 'void') return
    giver.debitsPosted += amount
    taker.creditsPosted += amount
  }
}
