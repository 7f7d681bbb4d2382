import { Backoff } from '../actor/backoff.js'
import { BoundedMap } from '../actor/bounded-map.js'
import type { Timer } from '../actor/clock.js'
import { processorTime } from '../actor/processor-time.js'
import type { Id } from '../format/id.js'
import type { VerifierOptions } from '../source/source-defaults.js'
import type { Hints } from '../source/source-messages.js'
import { tryWrite } from '../store/disk-error.js'
import { IndexNews } from './index-news.js'
import { LookPace } from './look-pace.js'
import { OldestWait } from './oldest-wait.js'
import type { AgendaMember } from './proof-agenda.js'
import { type Lane, lanes, priorities } from './proof-records.js'
import { RootLooks } from './root-looks.js'
import type { VerifierParts } from './verifier-parts.js'

/** When no node answers, requests for roots would be in vain: all wait then, for half a minute at most. */
const nodesAway = { failuresMax: 3, restMs: 1000, restMaxMs: 30_000 }

/** In which order lanes have their turns: what is new more often than what was looked at before, and none never. */
const turns: readonly Lane[] = [
  lanes.named,
  lanes.led,
  lanes.named,
  lanes.led,
  lanes.lone,
  lanes.led,
  lanes.ledAgain,
  lanes.named,
  lanes.lone,
  lanes.led,
  lanes.loneAgain,
]

/** Roots whose last look is remembered, to wait longer for more of their contents. */
const recentMax = 2000

/** Ids of the catalog's list in one sweep, some 20 ms: of a million ids each is read in seven hours. */
const listedMax = 2500

/** Lanes of ids that nobody named as a root, so that they may be no transactions at all; and the lanes of roots. */
const guesses: readonly Lane[] = [lanes.lone, lanes.loneAgain]
const rootLanes: readonly Lane[] = Object.values(lanes).filter((lane) => !guesses.includes(lane))

/** Ids that nobody named as a root are looked at together, at least at this part of the rate of requests. */
const [togetherMax, leastPart] = [16, 1 / 20] as const

/** Between two looks for something that is due while roots are being looked at. */
const besideMs = 200

/** `isClients`: a client named the hints, and not who brought the bytes. `isIndexed`: the index has it as a transaction. */
export type ProofMarks = Pick<AgendaMember, 'isClients' | 'isIndexed'>

/** Roots that are looked at together. */
interface Chosen {
  readonly rootIds: readonly Id[]
  /** Nobody named them. */
  readonly isGuess: boolean
}

/**
 * Proves what was cached from sources that proved nothing, and finds the heights of blocks: root by root, with all contents that
 * wait for one. What cannot be proven yet is tried again after a time that grows, and when the index hears of it. Content is
 * never called wrong only because a node did not answer.
 */
export class Verifier {
  readonly #nodes: Backoff
  readonly #looks = new Set<RootLooks>()
  readonly #guessing: LookPace
  readonly #news: IndexNews
  readonly #oldest: OldestWait
  readonly #recent = new BoundedMap<Id, number>(recentMax)
  #noted: AgendaMember[] = []
  /** Whether a node answered when one was queried last. */
  #isAnswered = false
  #stopped = false
  #turn = 0
  #wake: Timer | undefined
  /** When it rings, by the clock of intervals. */
  #wakeMs = Number.POSITIVE_INFINITY
  #sweep: Timer | undefined
  /** Behind which id of the catalog's list the next sweep begins. */
  #listed: Id | undefined
  #idle: (() => void) | undefined

  constructor(
    private readonly parts: VerifierParts,
    private readonly options: VerifierOptions,
  ) {
    this.#nodes = new Backoff(nodesAway, parts.clock)
    const perSecond = parts.budget.requestsPerSecond
    const pace = { perSecond, leastPerSecond: perSecond * leastPart, together: togetherMax }
    this.#guessing = new LookPace(pace, parts.clock)
    this.#news = new IndexNews(parts)
    this.#oldest = new OldestWait(parts.agenda)
  }

  /** Takes up what an earlier process left, and what the catalog lists besides, now and each `everyMs`. */
  start(): void {
    this.#refill()
    this.#sweep = this.parts.clock.every(this.options.everyMs, () => this.#refill())
  }

  /**
   * A content is about to be recorded: `commit` writes it down first, so that a killed process leaves no record without its
   * hints. Hints are never believed.
   */
  note(id: Id, hints: Hints, priority: number, marks: ProofMarks = {}): void {
    if (this.#stopped) return
    this.#noted.push({ id, rootId: hints.rootId ?? id, hints, priority, ...marks })
  }

  /** Writes down what was noted. Where the disk refuses, the catalog's list still has the ids. */
  commit(): void {
    const noted = this.#noted
    if (noted.length === 0) return
    this.#noted = []
    this.#wakeWithin(this.#add(noted))
  }

  /** A content that was noted has its record now. It may have been looked at before, and found without. */
  recorded(id: Id, hints: Hints, priority: number, marks: ProofMarks = {}): void {
    if (this.#stopped || this.parts.agenda.has(id)) return
    this.note(id, hints, priority, marks)
    this.commit()
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.commit()
    for (const look of this.#looks) look.stop()
    this.parts.budget.close()
    this.#sweep?.cancel()
    this.#wake?.cancel()
    if (this.#looks.size > 0)
      await new Promise<void>((resolve) => {
        this.#idle = resolve
      })
  }

  /** Milliseconds until the first of them is due. */
  #add(members: readonly AgendaMember[]): number {
    const { agenda, clock } = this.parts
    const now = clock.now()
    let firstMs = Number.POSITIVE_INFINITY
    const dueOf = (member: AgendaMember): number => {
      const dueMs = this.#firstDue(member, now)
      firstMs = Math.min(firstMs, dueMs)
      return dueMs
    }
    this.#charged(() => tryWrite(() => agenda.add(members, dueOf, now)))
    return firstMs - now
  }

  /** Runs `act`, whose processor time counts as that of proofs. */
  #charged<T>(act: () => T): T {
    const beganMs = processorTime.monotonic()
    const done = act()
    this.parts.budget.spend(processorTime.monotonic() - beganMs)
    return done
  }

  /** A root waits a moment for more of its contents, and longer where some were looked at just now. */
  #firstDue({ rootId, priority }: AgendaMember, now: number): number {
    if (priority >= priorities.named) return now
    const { gatherMs, gatherMoreMs } = this.options
    const last = this.#recent.get(rootId)
    return last !== undefined && now - last < 4 * gatherMoreMs ? now + gatherMoreMs : now + gatherMs
  }

  #refill(): void {
    if (this.#stopped) return
    this.#add(this.#charged(() => this.#wishes()))
    this.#oldest.step()
    this.#run()
  }

  /**
   * The next part of the catalog's list; from the start again when it came to the end. What the index has by now can be proven,
   * so it has a place even where the agenda is full.
   */
  #wishes(): AgendaMember[] {
    const { catalog, agenda } = this.parts
    const ids = catalog.unsettled(this.#listed, listedMax)
    this.#listed = ids.length < listedMax ? undefined : ids.at(-1)
    const wishes: AgendaMember[] = []
    for (const id of ids) {
      if (agenda.has(id)) continue
      const known = catalog.attributes(id)
      const isIndexed = known?.place !== undefined || known?.height !== undefined
      const priority = isIndexed ? priorities.requested : priorities.listed
      const rootId = known?.place?.rootId ?? id
      if (isIndexed || agenda.isRoomy)
        wishes.push({ id, rootId, hints: {}, priority, ...(isIndexed ? { isIndexed } : {}) })
    }
    return wishes
  }

  #measure(nextMs: number | undefined): void {
    const { agenda, meters, clock } = this.parts
    const now = clock.now()
    const seconds = (sinceMs: number): number => Math.max(0, (now - sinceMs) / 1000)
    const { count } = agenda
    const oldest = count === 0 ? undefined : this.#oldest.sinceMs
    meters.waiting(
      count,
      oldest === undefined ? 0 : seconds(oldest),
      nextMs === undefined ? 0 : seconds(nextMs),
    )
  }

  #run(): void {
    this.#wake?.cancel()
    this.#wakeMs = Number.POSITIVE_INFINITY
    if (this.#stopped) return
    this.#news.hear()
    while (this.#looks.size < this.options.rootsAtOnce) {
      if (this.#nodes.isOn || this.parts.budget.waitMs > 0) break
      const chosen = this.#next()
      if (chosen === undefined) break
      this.#begin(chosen)
      // While the nodes are tried again, one at a time.
      if (this.#nodes.isDue) break
    }
    this.#sleep()
  }

  /** Roots that are looked at next: one that somebody named, or some that nobody did. */
  #next(): Chosen | undefined {
    const { agenda, clock } = this.parts
    const now = clock.now()
    const taken: ReadonlySet<Id> = new Set([...this.#looks].flatMap(({ rootIds }) => rootIds))
    // Nodes that do not answer get few requests in vain.
    const together = this.#isAnswered ? togetherMax : 1
    for (let tried = 0; tried < turns.length; tried += 1) {
      const lane = turns[this.#turn % turns.length] ?? lanes.led
      this.#turn += 1
      const isGuess = guesses.includes(lane)
      if (isGuess && this.#guessing.waitMs > 0) continue
      const rootIds = agenda.due(lane, now, taken, isGuess ? together : 1)
      if (rootIds.length === 0) continue
      if (isGuess) this.#guessing.begin(rootIds.length)
      return { rootIds, isGuess }
    }
    return undefined
  }

  #begin({ rootIds, isGuess }: Chosen): void {
    const { clock, log } = this.parts
    const looks = new RootLooks(rootIds, this.parts, this.options)
    this.#looks.add(looks)
    void looks
      .run()
      .then(({ answered, done, found }) => {
        if (answered !== 'nothing') this.#isAnswered = answered === 'answered'
        if (answered === 'away') this.#nodes.failed()
        else if (answered === 'answered') this.#nodes.well()
        if (isGuess) this.#guessing.learn(done, found)
      })
      .catch((error: unknown) => {
        log.error({ err: error, ids: rootIds }, 'contents could not be checked because of an error here')
        looks.putOff()
      })
      .finally(() => {
        this.#looks.delete(looks)
        for (const rootId of rootIds) this.#recent.set(rootId, clock.now())
        if (this.#stopped && this.#looks.size === 0) this.#idle?.()
        this.#run()
      })
  }

  /** Until the first root is due, or there is budget, or the nodes may be queried again; new blocks are noticed meanwhile. */
  #sleep(): void {
    const { clock, agenda, budget } = this.parts
    const nextMs = agenda.nextMs()
    this.#measure(nextMs)
    if (nextMs === undefined || this.#looks.size >= this.options.rootsAtOnce) return
    const { tipEveryMs } = this.options
    const untilDue = (among: readonly Lane[]): number =>
      (agenda.nextMs(among) ?? Number.POSITIVE_INFINITY) - clock.now()
    const guessMs = Math.max(untilDue(guesses), this.#guessing.waitMs)
    const dueMs = this.#news.isNew ? 0 : Math.min(untilDue(rootLanes), guessMs)
    const waitMs = Math.max(dueMs, this.#nodes.leftMs, Math.min(budget.waitMs, tipEveryMs / 5))
    // What is due first may be under way: its end wakes this up.
    const leastMs = this.#looks.size === 0 ? 1 : besideMs
    this.#wakeWithin(Math.min(Math.max(waitMs, leastMs), tipEveryMs))
  }

  /** Runs after this time, unless it does so earlier anyway. */
  #wakeWithin(ms: number): void {
    const { clock } = this.parts
    const atMs = clock.monotonic() + ms
    if (this.#stopped || ms === Number.POSITIVE_INFINITY || atMs >= this.#wakeMs) return
    this.#wake?.cancel()
    this.#wakeMs = atMs
    this.#wake = clock.after(Math.max(0, ms), () => this.#run())
  }
}
