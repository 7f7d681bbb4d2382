import type { Clock } from '../actor/clock.js'
import type { Agenda, Task, TaskLine } from './agenda.js'
import { markName, type OpeningMarks } from './opening-marks.js'

/** A bundle that is being opened. */
export interface OpenBundle {
  readonly party: string
  /** It failed, or was stuck. */
  readonly isAgain: boolean
  readonly isSuspect: boolean
  /** It has the place for small bundles. */
  readonly isExtra: boolean
  readonly begunMs: number
  /** None is begun beside it until then. */
  readonly aloneUntilMs: number
}

export interface TurnOptions {
  /** Bundles read at once; one more is read that is small. */
  readonly atOnce: number
  /** A bundle that was read for so long gives its place up where others wait, and goes on later. */
  readonly turnMs: number
  /** So does, from the place where it began, one that has read no item to its end for so long. */
  readonly stuckMs: number
}

/** A suspect waits for all others, but no longer than this: then no other is begun before it. */
const suspectWaitMs = 600_000
/** One at which two runs ended, or more, is opened alone for so long; what is only long is read on beside others. */
const aloneMs = 60_000

/** A party stands behind others for at most so many turns, and not at all where it used less than this part of one. */
const [behindTurns, chargedPart] = [10, 10]

/** One that failed or was stuck is begun after so many others, which may come without end. */
const freshMax = 16

/** Decides which bundle is opened next, and when one gives its place up. Times are those of the monotonic clock. */
export class BundleTurns {
  /** Parties that have used time, and until when they stand behind those that have not. */
  readonly #behind = new Map<string, number>()
  #isSmallNext = false
  #isStuckNext = false
  /** Begun since one that failed or was stuck. */
  #fresh = 0

  constructor(
    private readonly agenda: Agenda,
    private readonly marks: OpeningMarks,
    private readonly clock: Clock,
    private readonly options: TurnOptions,
  ) {}

  /** Whether all places are taken. */
  isFull(open: readonly OpenBundle[]): boolean {
    return this.#hasNoPlace(open) && open.some(({ isExtra }) => isExtra)
  }

  #hasNoPlace(open: readonly OpenBundle[]): boolean {
    return open.filter(({ isExtra }) => !isExtra).length >= this.options.atOnce
  }

  /** Time until the next of those that are open is a long one, which may let others begin; infinite where all are. */
  shortMs(open: readonly OpenBundle[]): number {
    const nowMs = this.clock.monotonic()
    return Math.min(...open.map(({ begunMs }) => begunMs + aloneMs - nowMs).filter((ms) => ms > 0))
  }

  /** The bundle that is opened next beside these, none of those that `isOpen` names (keys as hexadecimal text). */
  next(open: readonly OpenBundle[], isOpen: (key: string) => boolean): Task | undefined {
    const monotonicMs = this.clock.monotonic()
    if (this.isFull(open) || open.some(({ aloneUntilMs }) => aloneUntilMs > monotonicMs)) return undefined
    if (this.#hasNoPlace(open)) return this.#nextOther(open, isOpen)
    const nowMs = this.clock.now()
    const suspect = open.some(({ isSuspect }) => isSuspect) ? undefined : this.marks.next(nowMs)
    const isLate = suspect !== undefined && nowMs - suspect.dueMs > suspectWaitMs
    const other = isLate ? undefined : this.#nextOther(open, isOpen)
    if (other !== undefined || suspect === undefined) return other
    // One end may have been the fault of another bundle beside it, or of none. Beside what is only long any may be begun.
    const areLong = open.every(({ begunMs }) => monotonicMs - begunMs >= aloneMs)
    return areLong || this.marks.endsAt(markName(suspect.key)) === 1 ? suspect : undefined
  }

  /** The next one that is no suspect. */
  #nextOther(open: readonly OpenBundle[], isOpen: (key: string) => boolean): Task | undefined {
    const { atOnce } = this.options
    const taken = { has: (key: string): boolean => isOpen(key) || this.marks.isSuspect(key) }
    const regular = open.filter(({ isExtra }) => !isExtra)
    const isExtra = regular.length >= atOnce
    const parties = open.map(({ party }) => party)
    const behind = this.#partiesBehind()
    const isLast = atOnce > 2 && regular.length === atOnce - 1
    const without = new Set(isLast ? parties : [])
    const lines = isExtra ? (['small'] as const) : this.#lines()
    const isAgainNext = !isExtra && open.filter((one) => one.isAgain).length < Math.ceil(atOnce / 2)
    const again = (): Task | undefined => (isAgainNext ? this.#nextAgain(taken, without) : undefined)
    const owed = this.#fresh >= freshMax ? again() : undefined
    if (owed !== undefined) {
      this.#fresh = 0
      return owed
    }
    const first =
      this.#firstIn(lines, taken, new Set([...without, ...behind, ...(isExtra ? parties : [])])) ??
      this.#firstIn(lines, taken, without)
    return first ?? again()
  }

  /** Those that were stuck and those that failed begin in turns. */
  #nextAgain(taken: { has(key: string): boolean }, without: ReadonlySet<string>): Task | undefined {
    const lines: readonly TaskLine[] = this.#isStuckNext ? ['stuck', 'again'] : ['again', 'stuck']
    for (const line of lines) {
      const task = this.agenda.next(line, taken, without)
      if (task === undefined) continue
      this.#isStuckNext = line !== 'stuck'
      return task
    }
    return undefined
  }

  /** Small ones and others begin in turns. */
  #lines(): readonly TaskLine[] {
    return this.#isSmallNext ? ['small', 'first'] : ['first', 'small']
  }

  #firstIn(
    lines: readonly TaskLine[],
    taken: { has(key: string): boolean },
    without: ReadonlySet<string>,
  ): Task | undefined {
    for (const line of lines) {
      const task = this.agenda.next(line, taken, without)
      if (task === undefined) continue
      this.#isSmallNext = line !== 'small'
      this.#fresh += 1
      return task
    }
    return undefined
  }

  /** What is noted of a bundle that is begun now beside these. */
  opened(task: Task, open: readonly OpenBundle[]): OpenBundle {
    const begunMs = this.clock.monotonic()
    const ends = this.marks.endsAt(markName(task.key))
    const line = this.agenda.lineOf(task)
    return {
      party: this.agenda.partyName(task),
      isAgain: line === 'again' || line === 'stuck',
      isSuspect: ends > 0,
      isExtra: this.#hasNoPlace(open),
      begunMs,
      aloneUntilMs: ends > 1 ? begunMs + aloneMs : 0,
    }
  }

  /**
   * Whether one of so many open bundles gives its place up. `readMs`: since when its items are read, where it can go on behind
   * the place where it began; the time until its bytes come is no part of its turn, or slow sources would leave it one item in
   * each. One that failed, or was stuck before, is read until it can go on. Suspects are read to their ends.
   */
  isOver(one: OpenBundle, openCount: number, readMs: number | undefined): boolean {
    const { turnMs, stuckMs } = this.options
    if (one.isSuspect || (one.isAgain && readMs === undefined)) return false
    const usedMs = this.clock.monotonic() - (readMs ?? one.begunMs)
    return usedMs >= (readMs === undefined ? stuckMs : turnMs) && this.agenda.lined > openCount
  }

  /** A bundle is open no more: its party stands behind others for as long as it was, but for no more than some turns. */
  closed({ party, begunMs }: OpenBundle): void {
    const nowMs = this.clock.monotonic()
    const usedMs = nowMs - begunMs
    if (usedMs < this.options.turnMs / chargedPart) return
    const from = Math.max(this.#behind.get(party) ?? 0, nowMs)
    this.#behind.set(party, Math.min(from + usedMs, nowMs + behindTurns * this.options.turnMs))
  }

  #partiesBehind(): string[] {
    const nowMs = this.clock.monotonic()
    for (const [party, untilMs] of this.#behind) if (untilMs <= nowMs) this.#behind.delete(party)
    return [...this.#behind.keys()]
  }
}
