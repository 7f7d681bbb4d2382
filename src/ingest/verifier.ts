import { Backoff } from '../actor/backoff.js'
import { BoundedMap } from '../actor/bounded-map.js'
import type { Timer } from '../actor/clock.js'
import { processorTime } from '../actor/processor-time.js'
import type { Id } from '../format/id.js'
import type { VerifierOptions } from '../source/source-defaults.js'
import type { Hints } from '../source/source-messages.js'
import { tryWrite } from '../store/disk-error.js'
import type { AgendaMember } from './proof-agenda.js'
import { type Lane, lanes, priorities } from './proof-records.js'
import { RootLook } from './root-look.js'
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

/** Ids of the catalog's list in one go, and roots that are looked up in the index. */
const [listedMax, roundMax] = [500, 100] as const

/** Between two looks for something that is due while roots are being looked at. */
const besideMs = 200

/**
 * Proves what was cached from sources that proved nothing, and finds the heights of blocks: root by root, with all contents that
 * wait for one. What cannot be proven yet is tried again after a time that grows, and when the index hears of it. Content is
 * never called wrong only because a node did not answer.
 */
export class Verifier {
  readonly #nodes: Backoff
  readonly #looks = new Map<Id, RootLook>()
  readonly #recent = new BoundedMap<Id, number>(recentMax)
  #noted: AgendaMember[] = []
  #stopped = false
  #turn = 0
  #wake: Timer | undefined
  #sweep: Timer | undefined
  /** Behind which id of the catalog's list the next sweep begins. */
  #listed: Id | undefined
  #growths = -1
  /** Behind which root the next look into the index begins; undefined: none is under way. */
  #indexRound: { after: Id | undefined; oldestMs: number } | undefined
  #idle: (() => void) | undefined
  #oldestMs = Number.POSITIVE_INFINITY

  constructor(
    private readonly parts: VerifierParts,
    private readonly options: VerifierOptions,
  ) {
    this.#nodes = new Backoff(nodesAway, parts.clock)
  }

  /** Takes up what an earlier process left, and what the catalog lists besides, now and each `everyMs`. */
  start(): void {
    this.#refill()
    this.#sweep = this.parts.clock.every(this.options.everyMs, () => this.#refill())
  }

  /**
   * A content is about to be recorded: `commit` writes it down first, so that a killed process leaves no record without its
   * hints. Hints are never believed. `isClients`: a client named them, and not who brought the bytes.
   */
  note(id: Id, hints: Hints, priority: number, isClients = false): void {
    if (this.#stopped) return
    const wish = { id, rootId: hints.rootId ?? id, hints, priority }
    this.#noted.push(isClients ? { ...wish, isClients } : wish)
  }

  /** Writes down what was noted. Where the disk refuses, the catalog's list still has the ids. */
  commit(): void {
    const noted = this.#noted
    if (noted.length === 0) return
    this.#noted = []
    this.#add(noted)
    this.#run()
  }

  /** A content that was noted has its record now. It may have been looked at before, and found without. */
  recorded(id: Id, hints: Hints, priority: number, isClients = false): void {
    if (this.#stopped || this.parts.agenda.has(id)) return
    this.note(id, hints, priority, isClients)
    this.commit()
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.commit()
    for (const look of this.#looks.values()) look.stop()
    this.parts.budget.close()
    this.#sweep?.cancel()
    this.#wake?.cancel()
    if (this.#looks.size > 0)
      await new Promise<void>((resolve) => {
        this.#idle = resolve
      })
  }

  #add(members: readonly AgendaMember[]): void {
    const { agenda, clock, budget } = this.parts
    const beganMs = processorTime.monotonic()
    const now = clock.now()
    tryWrite(() => agenda.add(members, (member) => this.#firstDue(member, now), now))
    budget.spend(processorTime.monotonic() - beganMs)
  }

  /** A root waits a moment for more of its contents, and longer where some were looked at just now. */
  #firstDue({ rootId, priority }: AgendaMember, now: number): number {
    if (priority >= priorities.named) return now
    const { gatherMs, gatherMoreMs } = this.options
    const last = this.#recent.get(rootId)
    return last !== undefined && now - last < 4 * gatherMoreMs ? now + gatherMoreMs : now + gatherMs
  }

  /**
   * The next part of the catalog's list; from the start again when it came to the end. What the index has by now can be proven,
   * so it has a place even where the agenda is full.
   */
  #refill(): void {
    const { catalog, agenda } = this.parts
    if (this.#stopped) return
    const ids = catalog.unsettled(this.#listed, listedMax)
    this.#listed = ids.length < listedMax ? undefined : ids.at(-1)
    const wishes: AgendaMember[] = []
    for (const id of ids) {
      if (agenda.has(id)) continue
      const known = catalog.attributes(id)
      const isIndexed = known?.place !== undefined || known?.height !== undefined
      const priority = isIndexed ? priorities.requested : priorities.listed
      if (isIndexed || agenda.isRoomy)
        wishes.push({ id, rootId: known?.place?.rootId ?? id, hints: {}, priority })
    }
    this.#add(wishes)
    this.#run()
  }

  #measure(nextMs: number | undefined): void {
    const { agenda, meters, clock } = this.parts
    const now = clock.now()
    const seconds = (sinceMs: number): number => Math.max(0, (now - sinceMs) / 1000)
    const { count } = agenda
    const oldest = count === 0 || this.#oldestMs > now ? 0 : seconds(this.#oldestMs)
    meters.waiting(count, oldest, nextMs === undefined ? 0 : seconds(nextMs))
  }

  #run(): void {
    this.#wake?.cancel()
    if (this.#stopped) return
    this.#hearOfBlocks()
    while (this.#looks.size < this.options.rootsAtOnce) {
      if (this.#nodes.isOn || this.parts.budget.waitMs > 0) break
      const rootId = this.#next()
      if (rootId === undefined) break
      this.#begin(rootId)
      // While the nodes are tried again, one at a time.
      if (this.#nodes.isDue) break
    }
    this.#sleep()
  }

  #next(): Id | undefined {
    const { agenda, clock } = this.parts
    const now = clock.now()
    const taken: ReadonlySet<Id> = new Set(this.#looks.keys())
    for (let tried = 0; tried < turns.length; tried += 1) {
      const lane = turns[this.#turn % turns.length] ?? lanes.led
      this.#turn += 1
      const rootId = agenda.next(lane, now, taken)
      if (rootId !== undefined) return rootId
    }
    return undefined
  }

  #begin(rootId: Id): void {
    const { clock, log } = this.parts
    const look = new RootLook(rootId, this.parts, this.options)
    this.#looks.set(rootId, look)
    void look
      .run()
      .then((answered) => {
        if (answered === 'away') this.#nodes.failed()
        else if (answered === 'answered') this.#nodes.well()
      })
      .catch((error: unknown) => {
        log.error({ err: error, id: rootId }, 'contents could not be checked because of an error here')
        look.putOff()
      })
      .finally(() => {
        this.#looks.delete(rootId)
        this.#recent.set(rootId, clock.now())
        if (this.#stopped && this.#looks.size === 0) this.#idle?.()
        this.#run()
      })
  }

  /** Until the first root is due, or there is budget, or the nodes may be queried again; new blocks are noticed meanwhile. */
  #sleep(): void {
    const { clock, agenda, budget } = this.parts
    const nextMs = agenda.nextMs
    this.#measure(nextMs)
    if (nextMs === undefined || this.#looks.size >= this.options.rootsAtOnce) return
    const { tipEveryMs } = this.options
    const dueMs = this.#indexRound === undefined ? nextMs - clock.now() : 0
    const waitMs = Math.max(dueMs, this.#nodes.leftMs, Math.min(budget.waitMs, tipEveryMs / 5))
    // What is due first may be under way: its end wakes this up.
    const leastMs = this.#looks.size === 0 ? 1 : besideMs
    this.#wake = clock.after(Math.min(Math.max(waitMs, leastMs), tipEveryMs), () => this.#run())
  }

  /** After a block, what was denied is looked up in the index: a part of all roots each time. */
  #hearOfBlocks(): void {
    const { agenda, tip, catalog, budget, clock } = this.parts
    if (this.#indexRound === undefined && tip.growths !== this.#growths) {
      this.#growths = tip.growths
      this.#indexRound = { after: undefined, oldestMs: Number.POSITIVE_INFINITY }
    }
    const round = this.#indexRound
    if (round === undefined || budget.waitMs > 0) return
    const beganMs = processorTime.monotonic()
    const roots = agenda.waiting(round.after, roundMax)
    const heard: Id[] = []
    const moved: AgendaMember[] = []
    for (const { rootId, root } of roots) {
      round.oldestMs = Math.min(round.oldestMs, root.sinceMs)
      if (root.attempts === 0 || root.isIndexed) continue
      const known = catalog.attributes(rootId)
      const holder = known?.place?.rootId
      if (holder !== undefined && holder !== rootId)
        moved.push({ id: rootId, rootId: holder, hints: {}, priority: priorities.listed })
      else if (known?.height !== undefined) heard.push(rootId)
    }
    const now = clock.now()
    tryWrite(() => {
      agenda.indexed(heard, now)
      agenda.add(moved, () => now, now)
    })
    budget.spend(processorTime.monotonic() - beganMs)
    if (roots.length >= roundMax) round.after = roots.at(-1)?.rootId
    else {
      this.#indexRound = undefined
      this.#oldestMs = round.oldestMs
    }
  }
}
