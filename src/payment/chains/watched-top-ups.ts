import type { Log } from '../../actor/log.js'
import { isLedgerGone, type LedgerRecord, type MoneyLedger } from '../../ledger/ledger-port.js'
import { topUpKind as kind, minedKind, readTopUp, type TopUp, topUpKey, watchedKind } from './top-up.js'

/** Names of payments that are read together. */
const pageMax = 500
/** Questions to the nodes of a chain at the same time. */
const atOnceMax = 8
/** Watched payments that one round looks at in turn. */
const inTurnMax = 200

/**
 * Looks again at the payments of a chain that may still change. Those in a block are looked at in each round. The others come in
 * turn, so many in a round: strangers can report any number of transactions that are never mined, and none may delay a payment
 * that its chain has.
 */
export class WatchedTopUps {
  /** By chain: the key of the payment whose turn was last. */
  readonly #turns = new Map<string, string>()

  /** `check` looks at the chain and does what follows. It rejects where the ledger is gone, and for bugs. */
  constructor(
    private readonly ledger: MoneyLedger,
    private readonly log: Log,
    private readonly check: (stored: LedgerRecord) => Promise<TopUp>,
  ) {}

  /** One round. Resolves with how many payments changed their state. */
  async round(chain: string): Promise<number> {
    let changed = 0
    const looked = new Set<string>()
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page = await this.#page(minedKind, chain, after, pageMax)
      for (const { key } of page.payments) looked.add(key)
      changed += await this.#lookAt(page.payments)
      after = page.next
    }
    const page = await this.#page(watchedKind, chain, this.#turns.get(chain) ?? '', inTurnMax)
    // Behind the last one the next round begins with the first one again.
    this.#turns.set(chain, page.next ?? '')
    return changed + (await this.#lookAt(page.payments.filter(({ key }) => !looked.has(key))))
  }

  /** Payments that are named in records of `names`, behind `after`. `next`: the last name, where more may follow. */
  async #page(
    names: string,
    chain: string,
    after: string,
    limit: number,
  ): Promise<{ readonly payments: readonly LedgerRecord[]; readonly next: string | undefined }> {
    const found = await this.ledger.records(names, topUpKey(chain, ''), after, limit)
    const keys = found.map(({ key }) => key)
    const payments = await this.ledger.recordsNamed(kind, keys)
    return { payments, next: keys.length < limit ? undefined : keys.at(-1) }
  }

  async #lookAt(payments: readonly LedgerRecord[]): Promise<number> {
    const waiting = payments.values()
    let changed = 0
    const lane = async (): Promise<void> => {
      for (const stored of waiting) if (await this.#hasChanged(stored)) changed += 1
    }
    await Promise.all(Array.from({ length: atOnceMax }, lane))
    return changed
  }

  async #hasChanged(stored: LedgerRecord): Promise<boolean> {
    try {
      return (await this.check(stored)).state !== readTopUp(stored).state
    } catch (error) {
      // One that cannot be looked at keeps no others waiting.
      if (isLedgerGone(error)) throw error
      this.log.error({ err: error, payment: stored.key }, 'a payment on a chain could not be looked at')
      return false
    }
  }
}
