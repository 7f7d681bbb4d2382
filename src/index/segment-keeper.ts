import { mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { roomMinBytes } from '../store/disk-full.js'
import { writeBatch, writeBatchInSteps } from './batch-writer.js'
import type { RowBatch } from './row-batch.js'
import type { WrittenSegment } from './segment-draft.js'
import {
  decodeSegmentList,
  encodeSegmentList,
  type ListedSegment,
  type SegmentList,
  type Segments,
  segmentPath,
} from './segment-list.js'
import { mergeSegments } from './segment-merge.js'

export interface MergeLimits {
  /** So many segments of a level become one of the next. */
  readonly segmentsAlike: number
  /** Segments of this level are not merged any more. */
  readonly levelMax: number
}

/** From 250,000 rows in two merges to 16 million. */
export const usualMerges: MergeLimits = { segmentsAlike: 8, levelMax: 2 }

/** Merges whose segments are all there: `levels` says how many there are, by how often their rows were merged. */
export function mergesDue(
  levels: ReadonlyMap<number, number>,
  { segmentsAlike, levelMax }: MergeLimits = usualMerges,
): number {
  let due = 0
  for (const [level, count] of levels) if (level < levelMax) due += Math.floor(count / segmentsAlike)
  return due
}

/** The writer's side of LMDB. */
export interface SegmentLedger {
  read(): Uint8Array | undefined
  /** Changes the list in one transaction with what `also` does. */
  write(list: Uint8Array, also?: () => void): void
}

/** What became of a step of merging: there is more to do, nothing to do, or the disk has no room for it. */
export type Tended = 'more' | 'idle' | 'no room'

/** Rows that were removed since their segments were written. */
export interface Removals {
  /** Whether a row of a segment is removed, as of now; undefined where none is. */
  snapshot(segment: number): ((row: number) => boolean) | undefined
  /**
   * These segments give way to others: rows that were removed since the snapshots were taken are removed from these. In the
   * transaction that lists them.
   */
  moved(from: readonly number[], to: readonly number[]): void
}

const noRemovals: Removals = { snapshot: () => undefined, moved: () => undefined }

function listed(number: number, { rows, bytes }: WrittenSegment): ListedSegment {
  return { number, level: 0, rows, bytes }
}

interface Merging {
  readonly from: readonly ListedSegment[]
  /** Level of the new one. */
  readonly level: number
  readonly number: number
  readonly steps: Generator<void, WrittenSegment>
}

/**
 * Adds segments and merges them: only the one writer. A file is whole and on the disk before the list names it, and it is removed
 * only when no list names it that a power cut could bring back. What a killed process left is removed at the start.
 */
export class SegmentKeeper {
  #merging: Merging | undefined
  /** Paths of files that no list names any more. */
  #retired: string[] = []
  /** Paths of segments that are not merged. */
  readonly #leftOut = new Set<string>()
  #taken: number

  constructor(
    private readonly segments: Segments,
    private readonly ledger: SegmentLedger,
    private readonly limits: MergeLimits = usualMerges,
    private readonly removals: Removals = noRemovals,
  ) {
    mkdirSync(segments.folder, { recursive: true, mode: 0o700 })
    this.#clean()
    this.#taken = this.#list().next
  }

  #list(): SegmentList {
    return decodeSegmentList(this.ledger.read())
  }

  /** Removes what an earlier process left half done. */
  #clean(): void {
    const { folder } = this.segments
    const known = new Set(this.#list().segments.map(({ number }) => basename(segmentPath(folder, number))))
    for (const name of readdirSync(folder)) {
      if (name.startsWith('segment-') && !known.has(name)) rmSync(join(folder, name), { force: true })
    }
  }

  /**
   * Writes the rows of a batch as a segment, and lists it in one transaction with what `also` does (which takes the rows out of
   * where they were). Throws errors of the disk; then nothing has changed.
   */
  add(batch: RowBatch, also?: () => void): ListedSegment {
    const added = this.write(batch)
    this.list([added], also)
    return added
  }

  /** Writes the rows of a batch as a segment that nobody reads before it is listed. Throws errors of the disk. */
  write(batch: RowBatch): ListedSegment {
    const number = this.#take()
    return listed(number, writeBatch(batch, segmentPath(this.segments.folder, number)))
  }

  /** The same, some of it with each step; where it is ended early (`return`) nothing is left. */
  *writeInSteps(batch: RowBatch): Generator<void, ListedSegment> {
    const number = this.#take()
    return listed(number, yield* writeBatchInSteps(batch, segmentPath(this.segments.folder, number)))
  }

  /** Lists written segments in one transaction with what `also` does. Where that throws, they are dropped. */
  list(added: readonly ListedSegment[], also?: () => void): void {
    try {
      this.#change(({ segments }) => [...segments, ...added], also)
    } catch (error) {
      this.drop(added)
      throw error
    }
  }

  /** Removes the files of segments that were not listed. */
  drop(written: readonly ListedSegment[]): void {
    for (const { number } of written) rmSync(segmentPath(this.segments.folder, number), { force: true })
  }

  /** A number that no file has, also if the merge or batch that takes it comes to nothing. */
  #take(): number {
    this.#taken += 1
    return this.#taken - 1
  }

  #change(to: (list: SegmentList) => readonly ListedSegment[], also?: () => void): void {
    const segments = to(this.#list())
    this.ledger.write(encodeSegmentList({ next: this.#taken, segments }), also)
    this.segments.refresh()
  }

  /** Goes on with a merge, or begins one. Throws errors of the disk; then the merge begins anew with the next call. */
  tend(steps = 1): Tended {
    if (this.#merging === undefined) {
      const from = this.#next()
      if (from === undefined) return 'idle'
      // A merged segment is not larger than what it is made of.
      if (!this.hasRoom(from.reduce((sum, { bytes }) => sum + bytes, 0))) return 'no room'
      this.#merging = this.#begin(from)
    }
    const merging = this.#merging
    try {
      for (let left = steps; left > 0; left -= 1) {
        const step = merging.steps.next()
        if (step.done !== true) continue
        this.#merging = undefined
        const { from, number, level } = merging
        this.replace(
          from.map((one) => one.number),
          [{ number, level, ...step.value }],
        )
        break
      }
    } catch (error) {
      this.#merging = undefined
      throw error
    }
    return 'more'
  }

  /** A segment that cannot be read whole is not merged. */
  leaveOut(path: string): void {
    this.#leftOut.add(path)
  }

  /** A segment is not merged from here on: it cannot be read whole, and is written anew. */
  hold(number: number): void {
    this.leaveOut(segmentPath(this.segments.folder, number))
    if (this.#merging?.from.some((one) => one.number === number) === true) this.close()
  }

  /** Whether a row of a segment is removed, as of now, for who writes it anew; undefined where none is. */
  removedIn(number: number): ((row: number) => boolean) | undefined {
    return this.removals.snapshot(number)
  }

  /**
   * Lists written segments in the place of others, in one transaction with what `also` does. `removedIn` was called when writing
   * them began. Where it throws they are dropped.
   */
  replace(from: readonly number[], written: readonly ListedSegment[], also?: () => void): void {
    const gone = new Set(from)
    try {
      this.#change(
        ({ segments }) => [...segments.filter(({ number }) => !gone.has(number)), ...written],
        () => {
          this.removals.moved(
            from,
            written.map(({ number }) => number),
          )
          also?.()
        },
      )
    } catch (error) {
      this.drop(written)
      throw error
    }
    for (const number of from) this.#retired.push(segmentPath(this.segments.folder, number))
  }

  /** The lowest level that has too many segments: the oldest of them. */
  #next(): readonly ListedSegment[] | undefined {
    const { segmentsAlike, levelMax } = this.limits
    const { folder } = this.segments
    const segments = this.#list().segments.filter(
      ({ number }) => !this.#leftOut.has(segmentPath(folder, number)),
    )
    for (let level = 0; level < levelMax; level += 1) {
      const alike = segments.filter((segment) => segment.level === level)
      if (alike.length >= segmentsAlike) return alike.slice(0, segmentsAlike)
    }
    return undefined
  }

  #begin(from: readonly ListedSegment[]): Merging {
    const { segments } = this.#list()
    const open = this.segments.all()
    const sources = from.flatMap(({ number }) => {
      const segment = open[segments.findIndex((one) => one.number === number)]
      const isRemoved = this.removedIn(number)
      return segment === undefined ? [] : [{ segment, ...(isRemoved === undefined ? {} : { isRemoved }) }]
    })
    const number = this.#take()
    const level = Math.max(...from.map((segment) => segment.level)) + 1
    return { from, level, number, steps: mergeSegments(sources, segmentPath(this.segments.folder, number)) }
  }

  /** Whether the disk has room for so many bytes, and some more. */
  hasRoom(bytes: number): boolean {
    const { bavail, bsize, blocks } = statfsSync(this.segments.folder)
    // Some file systems do not say it.
    return blocks === 0 || bavail * bsize >= bytes + roomMinBytes
  }

  /**
   * Paths of files that no list names any more, each given once: to be removed when the commit that dropped them would survive a
   * power cut, and readers had time to see it.
   */
  takeRetired(): string[] {
    return this.#retired.splice(0)
  }

  /** Gives up the merge that is under way, if there is one. */
  close(): void {
    this.#merging?.steps.return({ rows: 0, bytes: 0 })
    this.#merging = undefined
  }
}
