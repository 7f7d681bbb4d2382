import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { StrangersQuestions } from '../../admission/strangers-questions.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import {
  type CommitOutcome,
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'
import { historyRecord } from '../books/accounts.js'
import { dayRecord, topUpDayKind } from '../books/days.js'
import { accountOf } from '../books/wallets.js'
import { areOneToken, type TokenName } from '../prices/rates.js'
import { PaymentTerms, type PaymentTermsParts, type Unpayable } from './payment-terms.js'
import type { ChainReader, NoPayment, SeenPayment } from './seen-payment.js'
import {
  encodeTopUp,
  topUpKind as kind,
  minedKind,
  readTopUp,
  type TopUp,
  topUpKey,
  watchedKind,
} from './top-up.js'
import { WatchedTopUps } from './watched-top-ups.js'

/** The result of a reported payment. */
export type TopUpOutcome = { readonly topUp: TopUp; readonly isNew: boolean } | Unpayable | Refusal

export interface TopUpParts extends Omit<PaymentTermsParts, 'now'> {
  readonly ledger: MoneyLedger
  readonly readers: readonly ChainReader[]
  readonly clock: Clock
  /** As `ConfirmedTime.now`. */
  readonly confirmed: () => number
  readonly log: Log
  /** A credited payment that no node knows for this long was lost by its chain. Longer than nodes lag behind it. */
  readonly lostMs: number
  /** Bound of the questions to the nodes of each chain about ids that no payment here has. */
  readonly questionsPerSecond: number
}

/** How long a payment is waited for that no node knows. */
const awaitedMs = 24 * 3600_000
/** Questions a minute about ids that strangers name, for each network (IPv4 /24, IPv6 /48). */
const eachPerMinute = 60
/** Questions of clients about payments that are known, to each chain. */
const knownTurns = { perSecond: 20, burst: 40, eachPerMinute: 240 }

const warnedMax = 1000

/** The result of a payment's first report. With `status`: the id is no payment to this service. */
type FirstReport = Extract<TopUpOutcome, { readonly topUp: TopUp } | { readonly status: number }>

/** Payments on chains: reported by clients, credited once when deep enough, taken back where the chain loses them. */
export class TopUps {
  readonly #readers = new Map<TokenName, ChainReader>()
  /** By chain: questions about ids that no payment here has. */
  readonly #unknownQueues = new Map<string, StrangersQuestions<FirstReport>>()
  /** By chain: questions about payments that were seen. They have turns of their own: no flood of ids keeps them waiting. */
  readonly #knownQueues = new Map<string, StrangersQuestions<TopUp>>()
  /** Transactions that brought money without a payer. */
  readonly #warned = new BoundedMap<string, true>(warnedMax)
  readonly #terms: PaymentTerms
  readonly #watched: WatchedTopUps

  constructor(private readonly parts: TopUpParts) {
    this.#terms = new PaymentTerms({ ...parts, now: parts.clock.now })
    this.#watched = new WatchedTopUps(parts.ledger, parts.log, (stored) => this.#check(stored))
    const { readers, clock, questionsPerSecond: perSecond } = parts
    const strangersTurns = { perSecond, burst: 2 * perSecond, eachPerMinute }
    for (const reader of readers) {
      for (const token of reader.tokens) this.#readers.set(token, reader)
      this.#unknownQueues.set(
        reader.chain,
        new StrangersQuestions(strangersTurns, (report) => 'status' in report, clock),
      )
      this.#knownQueues.set(reader.chain, new StrangersQuestions(knownTurns, () => false, clock))
    }
  }

  supports(token: string): token is TokenName {
    return this.#readers.has(token as TokenName) && this.parts.addresses[token] !== undefined
  }

  /**
   * Records a payment that a client reports. It may be reported any number of times, also concurrently. `client`: its IP
   * address, whose turn it is. Refusals: no node answered, or `busy` where too many ask.
   */
  async submit(token: TokenName, id: string, client: string): Promise<TopUpOutcome> {
    const reader = this.#reader(token)
    const key = topUpKey(reader.chain, id)
    const before = await this.parts.ledger.record(kind, key)
    const recorded = before === undefined ? undefined : readTopUp(before)
    if (before !== undefined && recorded !== undefined && areOneToken(recorded.token, token)) {
      const { state } = recorded
      const topUp =
        state === 'failed'
          ? await this.#reportFailedAgain(before, client)
          : await this.#checkForClient(before, client)
      return { topUp, isNew: state !== topUp.state }
    }
    const questions = this.#unknownQueues.get(reader.chain)
    if (questions === undefined) throw new Error(`nobody reads ${reader.chain}`)
    // Not by the key alone: one transaction may be another payment in another token.
    return questions.ask(client, `${token} ${key}`, () =>
      recorded === undefined
        ? this.#report(reader, token, id)
        : this.#inOtherToken(reader, token, id, recorded),
    )
  }

  /**
   * A report of a transaction that is recorded in another token: mostly its word is wrong, and what is recorded is meant. One
   * transaction is credited in one token, so that what it paid in this one is for the operator to correct.
   */
  async #inOtherToken(
    reader: ChainReader,
    token: TokenName,
    id: string,
    recorded: TopUp,
  ): Promise<FirstReport | Refusal> {
    const seen = await reader.find(token, id)
    if (isRefusal(seen)) return seen
    if (seen === 'absent' || 'wrong' in seen) return { topUp: recorded, isNew: false }
    const text = `The transaction is recorded for what it paid in ${recorded.token}: ask the operator for this`
    this.#warn(reader.chain, id, { wrong: text, isUnclear: true })
    return { status: 400, text }
  }

  async #report(reader: ChainReader, token: TokenName, id: string): Promise<FirstReport | Refusal> {
    const key = topUpKey(reader.chain, id)
    const seen = await reader.find(token, id)
    if (seen === 'absent') return { status: 404, text: 'Transaction not found' }
    if (isRefusal(seen)) return seen
    if ('wrong' in seen) {
      this.#warn(reader.chain, id, seen)
      return { status: 400, text: seen.wrong }
    }
    const made = await this.#terms.atReport(token, reader.chain, id, seen)
    if (!('state' in made)) return made
    const change = { kind, key, value: encodeTopUp(made), expected: 0 }
    const outcome = await this.parts.ledger.commit({
      transfers: [],
      records: [change, ...watchChanges(key, seen)],
    })
    // The only condition is that there is no record: where it fails, another request reported the payment at the same time.
    const isFirst = !isRejected(outcome)
    const stored = await this.parts.ledger.record(kind, key)
    if (stored === undefined) throw new Error(`the payment ${key} is not kept`)
    return { topUp: await this.#applySeen(stored, seen), isNew: isFirst }
  }

  /** Once for each transaction: reports of it may be repeated. */
  #warn(chain: string, id: string, { wrong, isUnclear }: NoPayment): void {
    const key = topUpKey(chain, id)
    if (isUnclear !== true || this.#warned.has(key)) return
    this.#warned.set(key, true)
    const about = { chain, transaction: id, why: wrong }
    this.parts.log.warn(about, 'a payment came and nobody is credited: give the credits by hand')
  }

  /** A known payment as it is now, or as it was known where no node can be reached now. */
  async #checkForClient(stored: LedgerRecord, client: string): Promise<TopUp> {
    const topUp = readTopUp(stored)
    if ((await this.parts.ledger.record(watchedKind, stored.key)) === undefined) return this.#check(stored)
    const looked = await this.#knownQueues
      .get(topUp.chain)
      ?.ask(client, stored.key, () => this.#check(stored))
    return looked === undefined || isRefusal(looked) ? topUp : looked
  }

  /**
   * A failed payment that is reported again. Its chain decides, not the time for which it was waited for: the chain may have it
   * after a day without it. Then it counts at the present price.
   */
  async #reportFailedAgain(stored: LedgerRecord, client: string): Promise<TopUp> {
    const before = readTopUp(stored)
    const { token, chain, id, timesCredited } = before
    const reader = this.#readers.get(token)
    const questions = this.#unknownQueues.get(chain)
    if (reader === undefined || questions === undefined) return before
    const report = await questions.ask(client, `${token} ${stored.key}`, async () => {
      const seen = await reader.find(token, id)
      if (seen === 'absent') return { status: 404, text: '' }
      if (isRefusal(seen)) return seen
      if ('wrong' in seen) return { status: 400, text: seen.wrong }
      const made = await this.#terms.atReport(token, chain, id, seen)
      if (!('state' in made)) return made
      const topUp = await this.#replace(stored, { ...made, timesCredited }, watchChanges(stored.key, seen))
      const now = await this.parts.ledger.record(kind, stored.key)
      return { topUp: now === undefined ? topUp : await this.#applySeen(now, seen), isNew: true }
    })
    return 'topUp' in report ? report.topUp : before
  }

  /** The chains on which payments are taken. */
  get chains(): readonly string[] {
    return [...new Set(this.parts.readers.map(({ chain }) => chain))]
  }

  /** Looks again at payments of a chain that may still change. Resolves with how many did. */
  recheck(chain: string): Promise<number> {
    return this.#watched.round(chain)
  }

  /** Asks the chain again for a payment that was credited: what differs now, or undefined where it is as it was. */
  async compare(key: string): Promise<string | Refusal | undefined> {
    const stored = await this.parts.ledger.record(kind, key)
    if (stored === undefined) return 'credited, and not kept'
    const topUp = readTopUp(stored)
    const { state, token, id, recipient } = topUp
    // It was taken back since, and is pending again: each recheck looks at it.
    if (state !== 'credited') return undefined
    const seen = await this.#readers.get(token)?.find(token, id, recipient)
    if (seen === undefined) return `nobody reads payments in ${token} any more`
    if (seen === 'absent') return 'credited here, and its chain does not know it'
    if (isRefusal(seen)) return seen
    if ('wrong' in seen) return `credited here, and its chain says: ${seen.wrong}`
    return this.#terms.difference(topUp, seen)
  }

  #reader(token: TokenName): ChainReader {
    const reader = this.#readers.get(token)
    if (reader === undefined) throw new Error(`nobody reads payments in ${token}`)
    return reader
  }

  /** Looks at the chain again, and does what follows from it. */
  async #check(stored: LedgerRecord): Promise<TopUp> {
    const topUp = readTopUp(stored)
    if (topUp.state === 'failed') return topUp
    const watched = await this.parts.ledger.record(watchedKind, stored.key)
    // It is not watched any more: another look may have ended it since this one read it.
    if (watched === undefined) return readTopUp((await this.parts.ledger.record(kind, stored.key)) ?? stored)
    const seen = await this.#reader(topUp.token).find(topUp.token, topUp.id, topUp.recipient)
    // No node answered: nothing is known that could change the payment.
    if (isRefusal(seen)) return topUp
    if (seen === 'absent') {
      if (topUp.state === 'credited') return this.#noteMissing(stored, topUp)
      if (this.parts.confirmed() - topUp.createdMs < awaitedMs) return topUp
      return this.#replace(stored, { ...topUp, state: 'failed', why: 'not_found' })
    }
    if ('wrong' in seen) {
      this.#warn(topUp.chain, topUp.id, seen)
      if (topUp.state === 'credited') return this.#takeBack(stored, topUp)
      return this.#replace(stored, { ...topUp, state: 'failed', why: seen.wrong })
    }
    return this.#applySeen(stored, seen)
  }

  /**
   * Credits a pending payment that is final, or checks a credited one. All that is credited is taken from the final transaction.
   * The chain may have another one under the id now than at the report: an id does not always prove the other fields
   * (`isBoundById`), and a node may state anything of a transaction without a block.
   */
  async #applySeen(stored: LedgerRecord, seen: SeenPayment): Promise<TopUp> {
    const noted = readTopUp(stored)
    if (noted.state === 'credited') return this.#keepCredited(stored, noted, seen)
    if (noted.state === 'failed') return noted
    if (!seen.isFinal) return this.#keepPending(stored, noted, seen)
    const due = await this.#terms.whenFinal(noted, seen)
    // The oracles do not answer: the next look tries again.
    if (isRefusal(due)) return noted
    if ('status' in due) return this.#replace(stored, { ...noted, state: 'failed', why: due.text })
    const credited = await this.#credit(stored, due, seen)
    const { account, sender } = seen
    // The credits are at the address that the sender's key signs items with. The sender's own address becomes its alias, so that
    // a balance request for it finds them, and credits that others put there are moved.
    if (account === credited.wallet) await this.parts.wallets.takeOverAlias(account, sender)
    return credited
  }

  /** A payment that is not deep enough. One that no block has is given up after a day, as one that no node has. */
  #keepPending(stored: LedgerRecord, topUp: TopUp, seen: SeenPayment): Promise<TopUp> | TopUp {
    const { height } = seen
    if (topUp.height !== undefined) return topUp
    if (height !== undefined)
      return this.#replace(stored, { ...topUp, height }, watchChanges(stored.key, seen))
    if (this.parts.confirmed() - topUp.createdMs < awaitedMs || topUp.timesCredited > 0) return topUp
    return this.#replace(stored, { ...topUp, state: 'failed', why: 'not_found' })
  }

  /** Checks a credited payment: one that is another transaction now, or in no block, is taken back or noted as missing. */
  async #keepCredited(stored: LedgerRecord, topUp: TopUp, seen: SeenPayment): Promise<TopUp> {
    const isAnother = this.#terms.difference(topUp, seen) !== undefined
    if (isAnother && seen.isFinal) return this.#takeBack(stored, withoutMissing(topUp))
    if (isAnother || (!seen.isFinal && seen.height === undefined)) return this.#noteMissing(stored, topUp)
    if (topUp.missingMs !== undefined) return this.#replace(stored, withoutMissing(topUp))
    if (seen.isBeyondWatching)
      await this.parts.ledger.commit({ transfers: [], records: unwatchChanges(stored.key) })
    return topUp
  }

  /** One commit: the transfer, and the payment's record as credited. */
  async #credit(stored: LedgerRecord, topUp: TopUp, seen: SeenPayment): Promise<TopUp> {
    const { winc, token, quantity, usdEquivalent, sender, id, chain } = topUp
    const { wallets, clock } = this.parts
    const about = {
      type: 'crypto',
      tokenType: token,
      tokenQuantity: quantity,
      usdEquivalent,
      senderAddress: sender,
      blockHeight: seen.height === undefined ? '' : String(seen.height),
    }
    const transferId = `topup:${stored.key}:${topUp.timesCredited}`
    const facts = { debit: `source:${chain}`, amount: BigInt(winc), reason: 'crypto_payment', reference: id }
    const credited: TopUp = { ...topUp, state: 'credited', timesCredited: topUp.timesCredited + 1 }
    const { wallet, outcome } = await wallets.commitToWalletOf(topUp.wallet, (wallet) => ({
      transfers: [{ id: transferId, kind: 'posted', credit: accountOf(wallet), ...facts, about }],
      records: [
        changed(stored, { ...credited, wallet }),
        historyRecord(wallet, clock.now(), transferId),
        dayRecord(topUpDayKind, clock.now(), stored.key),
        ...(seen.isBeyondWatching ? unwatchChanges(stored.key) : watchChanges(stored.key, seen)),
      ],
    }))
    return this.#committed(outcome, stored.key, { ...credited, wallet })
  }

  /** No node has the credited payment in a block: it is taken back after `lostMs` without it. */
  async #noteMissing(stored: LedgerRecord, topUp: TopUp): Promise<TopUp> {
    const missingMs = topUp.missingMs ?? this.parts.clock.now()
    if (this.parts.confirmed() - missingMs >= this.parts.lostMs)
      return this.#takeBack(stored, withoutMissing(topUp))
    return topUp.missingMs === undefined ? this.#replace(stored, { ...topUp, missingMs }) : topUp
  }

  /** The chain does not have it any more: what was credited is taken back, also where it was spent. */
  async #takeBack(stored: LedgerRecord, topUp: TopUp): Promise<TopUp> {
    const { winc, chain, id, timesCredited } = topUp
    const { wallets, clock, log } = this.parts
    // It is waited for anew. How long its price holds was decided by its report.
    const pricedMs = topUp.pricedMs ?? topUp.createdMs
    const next: TopUp = { ...topUp, state: 'pending', createdMs: clock.now(), pricedMs }
    const facts = { credit: `source:${chain}`, amount: BigInt(winc), reason: 'reorganization', reference: id }
    const transferId = `topup-reversed:${stored.key}:${timesCredited}`
    // From the wallet that has the credits now: its key may have taken them over.
    const { wallet, outcome } = await wallets.commitToWalletOf(topUp.wallet, (wallet) => ({
      transfers: [{ id: transferId, kind: 'posted', debit: accountOf(wallet), ...facts, mayOverdraw: true }],
      records: [changed(stored, next)],
    }))
    const about = { chain, transaction: id, winc, destination: wallet }
    log.warn(about, 'a payment was taken back: its chain lost it')
    return this.#committed(outcome, stored.key, next)
  }

  /** Commits the record of a payment as it is now, with further records. No credits are moved. */
  async #replace(stored: LedgerRecord, next: TopUp, extra: readonly RecordChange[] = []): Promise<TopUp> {
    const ending = next.state === 'failed' ? unwatchChanges(stored.key) : []
    const records = [changed(stored, next), ...extra, ...ending]
    return this.#committed(await this.parts.ledger.commit({ transfers: [], records }), stored.key, next)
  }

  /** What is written of a payment after an order for it: `next`, or what another look wrote before. */
  async #committed(outcome: CommitOutcome, key: string, next: TopUp): Promise<TopUp> {
    if (!isRejected(outcome)) return next
    // `conflict`: the record is another one since. `differs`: its transfer was made, at another price or for another address.
    if (outcome.rejected !== 'conflict' && outcome.rejected !== 'differs')
      throw new Error(`payment ${key}: ${outcome.rejected} at ${outcome.at}`)
    const now = await this.parts.ledger.record(kind, key)
    return now === undefined ? next : readTopUp(now)
  }
}

function changed({ key, version }: LedgerRecord, next: TopUp): RecordChange {
  return { kind, key, value: encodeTopUp(next), expected: version }
}

function withoutMissing({ missingMs, ...topUp }: TopUp): TopUp {
  return topUp
}

/** From now on it is looked at again, in each round where it is in a block. */
function watchChanges(key: string, { height }: SeenPayment): readonly RecordChange[] {
  const change: RecordChange = { kind: watchedKind, key, value: '1' }
  return height === undefined ? [change] : [change, { ...change, kind: minedKind }]
}

function unwatchChanges(key: string): readonly RecordChange[] {
  return [watchedKind, minedKind].map((names) => ({ kind: names, key, value: undefined }))
}
