import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { type BundleRecord, type BundleSummary, rewardOf } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import type { LostBundles } from './lost-bundles.js'

/** After so many attempts without an answer nodes are queried whether they have it. */
const unseenMax = 5
const takenOver = 'another machine of the cluster has taken over its items'

export interface PostingActs {
  /** Nodes have its transaction. */
  posted(bundle: BundleRecord): void
  /** It will be in no block. `counts`: its items may be the reason. */
  giveUp(bundle: BundleRecord, reason: string, counts: boolean): Promise<void>
  /** Its items are the concern of others. */
  drop(bundle: BundleRecord, reason: string): void
}

/**
 * Offers transactions to nodes. An earlier post may have been taken while its answer was lost, by a kill, a full disk or a proxy:
 * so a transaction is offered again for as long as its anchor holds, which costs nothing twice. It is given up only where several
 * looks, minutes apart, find it nowhere, and nodes can take it no more, or refuse it each time.
 */
export class Posting {
  /** Made by this run of the program, and never posted. */
  readonly #unposted = new Set<Id>()
  /** The wallet had too little when the last transaction was refused. */
  #isPoor = false
  /** When nodes have taken a transaction last. */
  #takenMs: number | undefined

  constructor(
    private readonly parts: BundlerParts,
    private readonly lost: LostBundles,
    private readonly acts: PostingActs,
  ) {}

  get isPoor(): boolean {
    return this.#isPoor
  }

  /** It was made now: no node can have it before `post`. */
  made(bundle: Id): void {
    this.#unposted.add(bundle)
  }

  /** Nothing is to be posted any more. */
  forget(bundle: Id): void {
    this.#unposted.delete(bundle)
  }

  /** A refusal: it is to be posted later. */
  async post(bundle: BundleRecord): Promise<Refusal | undefined> {
    if ((await this.parts.isTakenOver?.(bundle.items)) === true) return this.#leave(bundle)
    this.#unposted.delete(bundle.id)
    const posted = await this.parts.chain.postTransaction(bundle.transaction)
    if (!isRefusal(posted)) return this.#known(bundle)
    const isPoor = await this.#hasTooLittle(bundle)
    const isOver = this.lost.blocksOver(bundle) > 0
    const mayBeTaken = posted.refused !== 'malformed' && !isOver
    if (!mayBeTaken || bundle.attempts >= unseenMax) {
      const there = await this.#there(bundle.id)
      if (there === 'known') return this.#known(bundle)
      if (there !== 'absent') return there
    }
    // What costs more than there is waits for the wallet. Once its anchor is over no node takes it, whatever the wallet has.
    const waits = mayBeTaken || (isPoor && !isOver)
    if (waits) this.lost.forget(bundle.id)
    if (waits || !this.lost.note(bundle.id)) return posted
    // What was never refused while its anchor held has failed for the nodes alone, and so have all where none is taken.
    const areOthersTaken = this.#takenMs !== undefined && this.#takenMs >= bundle.createdMs
    await this.acts.giveUp(bundle, posted.message, !isOver && areOthersTaken)
    return undefined
  }

  async #leave(bundle: BundleRecord): Promise<Refusal | undefined> {
    if (!this.#unposted.has(bundle.id)) {
      const there = await this.#there(bundle.id)
      if (there === 'known') return this.#known(bundle)
      if (there !== 'absent') return there
      if (!this.lost.note(bundle.id)) return refuse('busy', 'self', takenOver)
    }
    this.acts.drop(bundle, takenOver)
    return undefined
  }

  #known(bundle: BundleRecord): undefined {
    this.lost.forget(bundle.id)
    this.#isPoor = false
    this.#takenMs = this.parts.clock.now()
    this.acts.posted(bundle)
  }

  async #hasTooLittle(bundle: BundleRecord): Promise<boolean> {
    const { address, chain, logger } = this.parts
    const balance = await chain.balance(address)
    const reward = this.#rewards(bundle)
    const isPoor = !isRefusal(balance) && balance < reward
    this.#isPoor = isPoor
    if (isPoor)
      logger.error(
        { address, balance: String(balance), reward: String(reward) },
        'the wallet of the upload service has too little',
      )
    return isPoor
  }

  /** Whether nodes have a transaction. A refusal: they do not state it. */
  async #there(id: Id): Promise<'known' | 'absent' | Refusal> {
    const status = await this.parts.chain.agreedStatus(id)
    if (!isRefusal(status)) return 'known'
    return status.refused === 'unknown' ? 'absent' : status
  }

  /** What this bundle costs, with those that nodes have and that may not be mined yet. */
  #rewards(bundle: BundleRecord): bigint {
    const { bundles } = this.parts
    const isUnpaid = ({ id, state, height }: BundleSummary): boolean =>
      id !== bundle.id && state !== 'packed' && height === undefined
    const open = bundles.open().filter(isUnpaid)
    const all = [bundle, ...open.flatMap(({ id }) => bundles.find(id) ?? [])]
    return all.reduce((sum, one) => sum + rewardOf(one), 0n)
  }
}
