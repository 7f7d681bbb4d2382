import type { Log } from '../../actor/log.js'
import { isLedgerGone, type LedgerRecord, type MoneyLedger } from '../../ledger/ledger-port.js'
import { topUpKind as kind, readTopUp, type TopUp, topUpKey, watchedKind } from './top-up.js'

/** Names of watched payments that are read together. */
const pageMax = 500
/** Questions to the nodes of a chain at the same time. */
const atOnceMax = 8
/** Payments without a block that one round looks at. */
const unminedEachRound = 200
/**
 * Payments without a block that are watched: of a chain, and of one sender. A transaction that is never mined costs its sender
 * nothing, and nodes keep it for hours.
 */
const [unminedMax, unminedOfSender] = [2000, 16] as const

interface Unmined {
  all: number
  readonly bySender: Map<string, number>
}

/**
 * Looks again at the payments of a chain that may still change. A payment in a block is looked at in each round. Those without a
 * block come in turns: strangers can report any number of them, and none may delay a payment that its chain has.
 */
export class WatchedTopUps {
  /** By chain: what the last round saw, and what was reported since. */
  readonly #unmined = new Map<string, Unmined>()
  /** By chain: the key of the payment without a block that was looked at last. */
  readonly #turns = new Map<string, string>()

  /** `check` looks at the chain and does what follows. It rejects where the ledger is gone, and for bugs. */
  constructor(
    private readonly ledger: MoneyLedger,
    private readonly log: Log,
    private readonly check: (stored: LedgerRecord) => Promise<TopUp>,
  ) {}

  /** Whether another payment of this sender can be watched before it is in a block. */
  hasRoom(chain: string, sender: string): boolean {
    const { all, bySender } = this.#unmined.get(chain) ?? noneUnmined()
    return all < unminedMax && (bySender.get(sender) ?? 0) < unminedOfSender
  }

  /** Counts a payment without a block that is watched from now on. */
  added(chain: string, sender: string): void {
    const counts = this.#unmined.get(chain) ?? noneUnmined()
    this.#unmined.set(chain, counts)
    count(counts, sender)
  }

  /** One round. Resolves with how many payments changed their state. */
  async round(chain: string): Promise<number> {
    const counts = noneUnmined()
    const turn = this.#turns.get(chain) ?? ''
    const inTurn: LedgerRecord[] = []
    let changed = 0
    for await (const page of this.#pages(chain)) {
      const mined = page.filter((stored) => isMined(readTopUp(stored)))
      changed += await this.#lookAt(mined)
      for (const stored of page) {
        const topUp = readTopUp(stored)
        if (isMined(topUp)) continue
        count(counts, topUp.sender)
        if (stored.key > turn && inTurn.length < unminedEachRound) inTurn.push(stored)
      }
    }
    this.#unmined.set(chain, counts)
    // Behind the last one the next round begins with the first one again.
    this.#turns.set(chain, inTurn.length < unminedEachRound ? '' : (inTurn.at(-1)?.key ?? ''))
    return changed + (await this.#lookAt(inTurn))
  }

  /** The payments of a chain that are watched, in the order of their keys. */
  async *#pages(chain: string): AsyncGenerator<readonly LedgerRecord[]> {
    for (let after = ''; ; ) {
      const names = await this.ledger.records(watchedKind, topUpKey(chain, ''), after, pageMax)
      const keys = names.map(({ key }) => key)
      const found = await this.ledger.recordsNamed(kind, keys)
      yield found.sort((a, b) => (a.key < b.key ? -1 : 1))
      const last = keys.at(-1)
      if (last === undefined || keys.length < pageMax) return
      after = last
    }
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

function noneUnmined(): Unmined {
  return { all: 0, bySender: new Map() }
}

function count(counts: Unmined, sender: string): void {
  counts.all += 1
  counts.bySender.set(sender, (counts.bySender.get(sender) ?? 0) + 1)
}

/** Its chain had it in a block at some time. */
function isMined({ height, timesCredited }: TopUp): boolean {
  return height !== undefined || timesCredited > 0
}
