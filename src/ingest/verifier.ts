import { Backoff } from '../actor/backoff.js'
import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Address } from '../actor/mailbox-address.js'
import type { Attributes } from '../catalog/attributes.js'
import type { CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import type { LmdbCatalog } from '../catalog/reader.js'
import type { Id } from '../format/id.js'
import { insist } from '../source/keeping/commit-batch.js'
import type { RootHeights } from '../source/roots/root-heights.js'
import type { VerifierOptions } from '../source/source-defaults.js'
import type { Hints } from '../source/source-messages.js'
import type { Evidence, ProofVerdict } from './evidence.js'
import { priorities, type Waiting, WaitingList } from './waiting.js'

export interface VerifierParts {
  readonly catalog: LmdbCatalog
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly heights: Pick<RootHeights, 'of'>
  readonly evidence: Evidence
  /** Drops the bytes that proved wrong, forgets what came with them, and brings proven ones. */
  readonly replace: (known: Attributes, digest: Uint8Array) => Promise<void>
  readonly clock: Clock
  readonly log: Log
}

const retryMaxMs = 3_600_000

/** When no node answers, requests for payloads would be in vain: all wait then, for half a minute at most. */
const nodesAway = { failuresMax: 3, restMs: 1000, restMaxMs: 30_000 }

/**
 * Proves what was cached from sources that proved nothing, and finds the heights of blocks, one payload after the
 * other. What it cannot prove yet it tries again. Content is never called wrong only because a node did not answer.
 */
export class Verifier {
  readonly #waiting: WaitingList
  readonly #nodes: Backoff
  #stopped = false
  /**
   * Of the attempt under way. Each has its own, because a long-lived signal would keep everything that was derived
   * from it in memory.
   */
  #abort = new AbortController()
  #underway: Promise<void> | undefined
  #wake: Timer | undefined
  #sweep: Timer | undefined
  #last: Id | undefined

  constructor(
    private readonly parts: VerifierParts,
    private readonly options: VerifierOptions,
  ) {
    this.#waiting = new WaitingList(options.waitingMax)
    this.#nodes = new Backoff(nodesAway, parts.clock)
  }

  /** Takes up what an earlier process left, now and each `everyMs`. */
  start(): void {
    this.#refill()
    this.#sweep = this.parts.clock.every(this.options.everyMs, () => this.#refill())
  }

  /**
   * Puts an id on the list, or gives one that waits better hints or a higher priority. A full list drops the least
   * important entry; the catalog still has it.
   */
  add(id: Id, hints: Hints, priority: number): void {
    if (this.#stopped) return
    const known = this.#waiting.get(id)
    if (known !== undefined && hints.rootId === undefined && priority <= known.priority) return
    const better = hints.rootId === undefined ? (known?.hints ?? hints) : hints
    const rank = Math.max(priority, known?.priority ?? priority)
    const dueMs = this.parts.clock.monotonic()
    if (this.#waiting.put({ id, hints: better, priority: rank, dueMs }) && !this.#nodes.isOn) this.#run()
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#abort.abort()
    this.#sweep?.cancel()
    this.#wake?.cancel()
    await this.#underway
  }

  /** The next part of the catalog's list; from the start again when it came to the end. */
  #refill(): void {
    const room = this.options.waitingMax - this.#waiting.size
    if (room <= 0) return
    const ids = this.parts.catalog.unsettled(this.#last, room)
    this.#last = ids.length < room ? undefined : ids.at(-1)
    for (const id of ids) this.add(id, {}, priorities.listed)
  }

  #run(): void {
    this.#wake?.cancel()
    this.#underway ??= this.#work().finally(() => {
      this.#underway = undefined
      this.#sleep()
    })
  }

  /** Until the first of those that wait is due, or the nodes may be queried again: some are due already then. */
  #sleep(): void {
    const { clock } = this.parts
    const { leftMs } = this.#nodes
    const due = leftMs > 0 ? clock.monotonic() + leftMs : this.#waiting.firstDueMs
    if (this.#stopped || due === undefined) return
    this.#wake = clock.after(Math.max(due - clock.monotonic(), 1), () => this.#run())
  }

  async #work(): Promise<void> {
    for (;;) {
      const isOver = this.#stopped || this.#nodes.isOn
      const waiting = isOver ? undefined : this.#waiting.next(this.parts.clock.monotonic())
      if (waiting === undefined) return
      this.#abort = new AbortController()
      const { id, attempts } = waiting
      const done = await this.#look(waiting).catch((error: unknown) => {
        this.parts.log.error({ err: error, id }, 'a payload could not be checked because of an error here')
        return false
      })
      // Better hints may have come meanwhile; then this attempt does not count.
      if (!this.#waiting.holds(waiting)) continue
      if (!done && attempts + 1 < this.options.attemptsMax) {
        this.#waiting.again(waiting, this.#dueAgain(attempts))
        continue
      }
      this.#waiting.remove(waiting)
      if (!done) await insist(this.parts.keeper, { kind: 'resigned', id })
    }
  }

  /** When to look again after so many looks before this one. */
  #dueAgain(attempts: number): number {
    return this.parts.clock.monotonic() + Math.min(this.options.retryMs * 2 ** attempts, retryMaxMs)
  }

  /** One look at one id. True: nothing is left to do for it. */
  async #look({ id, hints }: Waiting): Promise<boolean> {
    const { catalog, evidence, replace, log } = this.parts
    const known = catalog.attributes(id)
    const digest = known?.digest
    if (known === undefined || digest === undefined) return true
    if (known.verified) return this.#height(known)
    if (catalog.blobSize(digest) === undefined) {
      // It was evicted before it was proven; what is fetched for this id later is checked again.
      await insist(this.parts.keeper, { kind: 'resigned', id })
      return true
    }
    const verdict: ProofVerdict = await evidence.judge(known, digest, hints, this.#abort.signal)
    if (verdict.kind === 'undecided' && verdict.isAway === true) this.#nodes.failed()
    else this.#nodes.well()
    if (verdict.kind === 'wrong') {
      log.error({ id, reason: verdict.reason }, 'cached content does not belong to its id: it is removed')
      await replace(known, digest)
      // The replacement is checked again, at least for its height.
      return false
    }
    if (verdict.kind === 'undecided') {
      log.debug({ id, reason: verdict.reason }, 'not proven yet')
      return false
    }
    const proven = { ...known, ...verdict.learned, digest, verified: true }
    await insist(this.parts.keeper, { kind: 'learn', attributes: [proven] })
    log.debug({ id }, 'proven')
    return proven.height !== undefined || this.#height(proven)
  }

  /** Learns the height of the block that holds the root. */
  async #height(known: Attributes): Promise<boolean> {
    // The index may have known the height already: `learn` then removes the id from the list.
    if (known.height !== undefined) return insist(this.parts.keeper, { kind: 'learn', attributes: [known] })
    const rootId = known.place?.rootId ?? known.id
    const height = await this.parts.heights.of(rootId, this.#abort.signal)
    if (height === undefined) return false
    const attributes = [{ ...known, height }]
    return insist(this.parts.keeper, { kind: 'learn', attributes })
  }
}
