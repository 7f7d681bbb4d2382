import { setImmediate as turn } from 'node:timers/promises'
import { processorTime } from '../actor/processor-time.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Id } from '../format/id.js'
import type { VerifierOptions } from '../source/source-defaults.js'
import type { Hints } from '../source/source-messages.js'
import type { ProofClaim, ProofVerdict, Undecided } from './evidence.js'
import type { AgendaMember, RootOutcome } from './proof-agenda.js'
import { pauseAfter } from './proof-pause.js'
import type { VerifierParts } from './verifier-parts.js'

/** What is left to do for the contents of a root, as the catalog has them now. */
interface Sorted {
  readonly claims: ProofClaim[]
  /** Proven, without the height of their block. */
  readonly heightless: Attributes[]
}

/** Contents of one root that are judged at once; the others have their turn later, so that no root takes all the time. */
const membersMax = 1024

/** Contents that are read from the catalog in one go. */
const sortedMax = 64

/** `nothing`: no request was sent. `absent`: no node has the root. */
export type Answered = 'found' | 'absent' | 'away' | 'nothing'

/**
 * One look at one root, and at all contents that wait for it: `run`, then `written` where that gave something to write, then
 * `resigned` and `outcome`.
 */
export class RootLook {
  readonly #abort = new AbortController()
  readonly #gone: Id[] = []
  /** Without a record, or without bytes, when the look began: they may be brought meanwhile. */
  readonly #missing: Id[] = []
  readonly #evicted: Id[] = []
  readonly #resigned: Id[] = []
  readonly #moved: { id: Id; rootId: Id; hints: Hints }[] = []
  #members: readonly AgendaMember[] = []
  /** What is to be written into the catalog. */
  #learned: readonly Attributes[] = []
  /** Why the root must be looked at again. */
  #hindrance: Undecided['because'] | 'other' | undefined
  #answered: Answered = 'nothing'
  #isStopped = false

  constructor(
    private readonly rootId: Id,
    private readonly parts: VerifierParts,
    private readonly options: VerifierOptions,
  ) {}

  get answered(): Answered {
    return this.#answered
  }

  stop(): void {
    this.#isStopped = true
    this.#abort.abort()
  }

  /**
   * Judges what waits for the root. Resolves with what the catalog has to learn: what was proven, with the height of the block.
   * Rejects only because of a bug.
   */
  async run(): Promise<readonly Attributes[]> {
    const { agenda, evidence, budget } = this.parts
    this.#members = agenda.members(this.rootId, membersMax)
    const { claims, heightless } = await this.#sort(this.#members)
    const proven: Attributes[] = [...heightless]
    if (claims.length > 0) {
      const { verdicts, ranMs } = await evidence.judgeAll(this.rootId, claims, this.#abort.signal)
      if (this.#isStopped) return []
      budget.spend(ranMs)
      for (const claim of claims) {
        const learned = await this.#take(claim, verdicts.get(claim.known.id))
        if (learned !== undefined) proven.push(learned)
      }
    }
    if (proven.length > 0) this.#learned = await this.#withHeight(proven)
    if (claims.length > 0 || heightless.length > 0) this.#answered = this.#answer()
    return this.#isStopped ? [] : this.#learned
  }

  /** The catalog has what `run` gave, or could not write it. */
  written(isWritten: boolean): void {
    if (this.#learned.length === 0) return
    const isPlaced = this.#learned.every(({ height }) => height !== undefined)
    if (!isWritten || !isPlaced) this.#hindrance ??= isWritten ? 'pending' : 'other'
    else for (const { id } of this.#learned) this.#gone.push(id)
  }

  /** Contents for which nothing more can be done. */
  resigned(): readonly Id[] {
    if (this.#isStopped) return []
    if (this.#hindrance !== undefined && this.#attempts() >= this.#attemptsMax()) {
      const moved = this.#moved.map(({ id }) => id)
      const left = new Set([...this.#gone, ...this.#missing, ...this.#evicted, ...moved])
      for (const { id } of this.#members) if (!left.has(id)) this.#resigned.push(id)
    }
    return [...this.#resigned, ...this.#evicted.filter((id) => !this.#isHere(id))]
  }

  /** Looks again later, whatever became of the look. */
  putOff(): void {
    this.#hindrance = 'other'
  }

  #answer(): Answered {
    if (this.#hindrance === 'away' || this.#hindrance === 'absent') return this.#hindrance
    return 'found'
  }

  /** Leaves out what is proven, or gone; what has another root by now goes there. */
  async #sort(members: readonly AgendaMember[]): Promise<Sorted> {
    const sorted: Sorted = { claims: [], heightless: [] }
    for (let at = 0; at < members.length; at += sortedMax) {
      // The thread serves readers meanwhile.
      if (at > 0) await turn()
      const beganMs = processorTime.monotonic()
      for (const member of members.slice(at, at + sortedMax)) this.#sortOne(member, sorted)
      this.parts.budget.spend(processorTime.monotonic() - beganMs)
    }
    return sorted
  }

  #sortOne({ id, hints, isClients }: AgendaMember, { claims, heightless }: Sorted): void {
    const { catalog } = this.parts
    const known = catalog.attributes(id)
    const digest = known?.digest
    const rootId = known?.place?.rootId
    if (known === undefined || digest === undefined) this.#missing.push(id)
    else if (rootId !== undefined && rootId !== this.rootId) this.#moved.push({ id, rootId, hints: {} })
    else if (known.verified) heightless.push(known)
    // It was evicted before it was proven; what is fetched for this id later is checked again.
    else if (catalog.blobSize(digest) === undefined) this.#evicted.push(id)
    else claims.push({ known, digest, hints, ...(isClients === true ? { isClients } : {}) })
  }

  /** What is learned of a content by its verdict; undefined where nothing is. */
  async #take(claim: ProofClaim, verdict: ProofVerdict | undefined): Promise<Attributes | undefined> {
    const { meters, log, replace } = this.parts
    const { known, digest } = claim
    const { id } = known
    if (verdict === undefined) return undefined
    meters.judged(verdict.kind, 1)
    if (verdict.kind === 'proven') {
      log.debug({ id }, 'proven')
      return { ...known, ...verdict.learned, digest, verified: true }
    }
    if (verdict.kind === 'wrong') {
      log.error({ id, reason: verdict.reason }, 'cached content does not belong to its id: it is removed')
      await replace(known, digest)
      // The replacement is checked again, at least for its height.
      this.#hindrance ??= 'other'
      return undefined
    }
    log.debug({ id, reason: verdict.reason }, 'not proven yet')
    // A hint that proved false is forgotten. A place of the index or of an earlier proof stays.
    if (verdict.because === 'elsewhere' && known.place === undefined)
      this.#moved.push({ id, rootId: id, hints: {} })
    else this.#hindrance = verdict.because ?? this.#hindrance ?? 'other'
    return undefined
  }

  /** With the height of the block, which is requested once. */
  async #withHeight(proven: readonly Attributes[]): Promise<readonly Attributes[]> {
    const known = proven.find(({ height }) => height !== undefined)?.height
    const height = known ?? (await this.parts.heights.of(this.rootId, this.#abort.signal))
    return height === undefined ? proven : proven.map((one) => ({ ...one, height }))
  }

  #attemptsMax(): number {
    const isLone = this.#hindrance === 'absent' && this.parts.agenda.root(this.rootId)?.isLed !== true
    return isLone
      ? Math.min(this.options.loneAttemptsMax, this.options.attemptsMax)
      : this.options.attemptsMax
  }

  /** Looks that proved nothing, with this one. */
  #attempts(): number {
    const before = this.parts.agenda.root(this.rootId)?.attempts ?? 0
    return before + (this.#hindrance === undefined || this.#hindrance === 'away' ? 0 : 1)
  }

  #isHere(id: Id): boolean {
    const { catalog } = this.parts
    const digest = catalog.attributes(id)?.digest
    return digest !== undefined && catalog.blobSize(digest) !== undefined
  }

  /** What is written down of the look; undefined where it was stopped. */
  outcome(): RootOutcome | undefined {
    if (this.#isStopped) return undefined
    const { agenda, clock, random } = this.parts
    const { rootId } = this
    const known = agenda.root(rootId)
    const before = known?.attempts ?? 0
    const now = clock.now()
    // A content is noted before its record is written. One that was recorded since keeps its place, and its hints.
    const away = [...this.#missing, ...this.#evicted].filter((id) => !this.#isHere(id))
    const gone = [...this.#gone, ...this.#resigned, ...away]
    const common = { rootId, gone, moved: this.#moved }
    // All of this part were judged; there may be more.
    if (this.#hindrance === undefined) return { ...common, dueMs: now, attempts: before }
    const { pauseMs, counts } = pauseAfter(this.#hindrance, before, known?.isLed === true, this.options)
    // Up to a fifth longer, so that what was denied together does not come back together.
    return { ...common, dueMs: now + pauseMs * (1 + random() / 5), attempts: counts ? before + 1 : before }
  }
}
