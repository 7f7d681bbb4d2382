import { statSync } from 'node:fs'
import { mappedBy, openMapped, SmallFacts, smallReads } from '../../native/mapped/mapped.js'
import type { MappedFile } from '../../native/mapped/mapped-file.js'
import type { Clock } from '../actor/clock.js'
import type { Cell } from '../actor/shared.js'
import type { Borrowed } from './borrowed.js'
import type { Content } from './content.js'
import { FileResidence, windowBytes } from './file-residence.js'
import { type FileState, isSameFile, stampOf } from './file-stamp.js'
import { Ticks } from './residence.js'
import { TickPace } from './tick-pace.js'

export interface MappedOptions {
  /** Address space that this thread's idle mappings may hold. */
  readonly mappedMaxBytes: number
  /** Files that this thread keeps open. */
  readonly filesMax: number
  /** Milliseconds for which a file is believed to be what it was; then its inode, size and time are looked at again. */
  readonly believeMs: number
}

/** A whole file as content. */
export interface FileContent extends Content {
  readonly stamp: FileState
  /** The same bytes for a server that sends them by itself. Undefined: not in one piece of memory. Absent: not mapped. */
  lend?(): Borrowed | undefined
}

/** More in one write gains nothing, and less is still warm in the cache when the socket copies it. */
const viewMaxBytes = 1024 * 1024

/** Files whose beliefs share a piece of shared memory. */
const beliefsEach = 1024

/**
 * Cells in shared memory: whether files are still at their paths. Servers never release memory that they watch. So cells are
 * reused, and there are only as many as the largest number of files at one time.
 */
class Beliefs {
  readonly #free: Cell[] = []

  take(): Cell {
    const free = this.#free.pop()
    if (free !== undefined) return free
    const cells = new Int32Array(new SharedArrayBuffer(4 * beliefsEach))
    for (let at = 1; at < beliefsEach; at += 1) this.#free.push({ cells, at })
    return { cells, at: 0 }
  }

  /** Nobody may look at it any more. */
  give(cell: Cell): void {
    this.#free.push(cell)
  }
}

/** A file that nobody asks for is looked at again after so many of them. */
const idleTicks = 60 * Ticks.lasting

/** One open file, for any number of readers of this thread. It is its own `Content`, so that opening costs no object. */
class MappedContent implements FileContent {
  readonly sizeBytes: number
  readonly stamp: FileState
  readers = 0
  retired = false
  /** Tick until which path and file are believed to belong together. */
  believedUntil: number
  readonly #file: MappedFile
  readonly #ticks: Ticks
  readonly #residence: FileResidence
  /** 1 while path and file are believed to belong together. Shared memory. */
  readonly #believed: Cell
  readonly #gone: (() => void)[] = []

  constructor(
    file: MappedFile,
    ticks: Ticks,
    private readonly beliefs: Beliefs,
  ) {
    this.#believed = beliefs.take()
    this.#file = file
    this.#ticks = ticks
    this.sizeBytes = file.sizeBytes
    this.stamp = stampOf(file.inode, file.modifiedNs)
    this.believedUntil = 0
    this.believe()
    this.#residence = new FileResidence(file, ticks)
  }

  /** To be called at each tick. */
  doubt(): void {
    if (this.#ticks.now >= this.believedUntil) this.#say(0)
  }

  /** Nobody reads it or has requested it: now and then its turn comes to be looked at again. */
  isDue(passedTicks: number): boolean {
    const idle = this.#ticks.now - this.believedUntil
    return this.readers === 0 && idle > 0 && idle % idleTicks < passedTicks
  }

  /** It was looked at again, and is still the file at its path. */
  believe(): void {
    this.believedUntil = this.#ticks.now + Ticks.lasting
    this.#say(1)
  }

  #say(believed: 0 | 1): void {
    this.#believed.cells[this.#believed.at] = believed
  }

  lend(): Borrowed | undefined {
    // The fallback has one buffer for all files.
    if (mappedBy === 'fallback') return undefined
    const memory = this.#file.view(0, this.sizeBytes)
    if (this.retired || memory.length < this.sizeBytes) return undefined
    return {
      owner: this,
      memory,
      here: this.#residence.here,
      offset: 0,
      conditions: [[this.#believed, 1]],
      onGone: (act) => this.#gone.push(act),
      hold: () => this.#hold(),
    }
  }

  #hold(): () => void {
    this.readers += 1
    return () => this.close()
  }

  read(start: number, end: number): Uint8Array | undefined {
    this.#check(start, end)
    const windowEnd = (Math.floor(start / windowBytes) + 1) * windowBytes
    const viewEnd = Math.min(end, windowEnd, start + viewMaxBytes)
    return this.#residence.has(start, viewEnd) ? this.#file.view(start, viewEnd) : undefined
  }

  /** A small range does not make a whole window come from the disk, a long read does. */
  async ready(start: number, end: number): Promise<boolean> {
    this.#check(start, end)
    const windowEnd = (Math.floor(start / windowBytes) + 1) * windowBytes
    const fetched = await this.#file.fetch(start, Math.min(end, windowEnd))
    // One window ahead, so that the disk works while the socket drains.
    if (fetched && end > windowEnd && !this.retired) {
      void this.#file.fetch(windowEnd, Math.min(end, windowEnd + windowBytes))
    }
    return fetched
  }

  #check(start: number, end: number): void {
    // Written so that NaN is outside.
    if (!(start >= 0 && start < end && end <= this.sizeBytes)) {
      throw new RangeError(`[${start}, ${end}) is not within ${this.sizeBytes} bytes`)
    }
  }

  close(): void {
    this.readers -= 1
    if (this.readers === 0 && this.retired) this.#file.close()
  }

  /** No new reader comes; the file is let go when the last one leaves. */
  retire(): void {
    this.retired = true
    for (const act of this.#gone) act()
    this.beliefs.give(this.#believed)
    if (this.readers === 0) this.#file.close()
  }
}

/**
 * Files of this thread that are mapped into memory, kept for the next reader. Files must never change in place or shrink
 * (blobs do not); they may be replaced or unlinked at any time.
 */
export class MappedFiles {
  readonly #options: MappedOptions
  readonly #ticks = new Ticks()
  readonly #beliefs = new Beliefs()
  readonly #pace: TickPace
  /** In order of last use, give or take `believeMs`. */
  readonly #entries = new Map<string, MappedContent>()
  #bytes = 0

  constructor(options: MappedOptions, clock: Clock) {
    this.#options = options
    const tickMs = Math.max(1, options.believeMs / Ticks.lasting)
    this.#pace = new TickPace(this.#ticks, tickMs, clock, (passedTicks) => {
      for (const [path, entry] of this.#entries) {
        entry.doubt()
        if (entry.isDue(passedTicks)) this.#review(path, entry)
      }
    })
  }

  /** The disk gets the room of a removed file back when no thread has it mapped any more. */
  #review(path: string, entry: MappedContent): void {
    try {
      if (isThere(path, entry)) return
    } catch {
      return // the next one who requests it gets the error
    }
    this.#forget(path, entry)
    entry.retire()
  }

  /** Counts up while beliefs about files grow old. */
  get tick(): number {
    return this.#ticks.now
  }

  /** The file at `path`, or undefined where there is none. Throws on any other failure of the disk. */
  open(path: string): FileContent | undefined {
    this.#pace.used()
    let entry = this.#entries.get(path)
    if (entry !== undefined && this.#ticks.now >= entry.believedUntil) {
      this.#forget(path, entry)
      entry = this.#stillThere(path, entry)
      if (entry !== undefined) this.#keep(path, entry)
    }
    if (entry === undefined) {
      const file = openMapped(path)
      if (file === undefined) return undefined
      entry = new MappedContent(file, this.#ticks, this.#beliefs)
      this.#keep(path, entry)
    }
    entry.readers += 1
    this.#trim()
    return entry
  }

  #stillThere(path: string, entry: MappedContent): MappedContent | undefined {
    let same: boolean
    try {
      same = isThere(path, entry)
    } catch (error) {
      // It is on no list any more: without this nobody would close it.
      entry.retire()
      throw error
    }
    if (!same) entry.retire()
    else entry.believe()
    return same ? entry : undefined
  }

  #keep(path: string, entry: MappedContent): void {
    this.#entries.set(path, entry)
    this.#bytes += entry.sizeBytes
  }

  #forget(path: string, entry: MappedContent): void {
    this.#entries.delete(path)
    this.#bytes -= entry.sizeBytes
  }

  /** Lets go of the files that were not used for longest and have no reader. */
  #trim(): void {
    const { filesMax, mappedMaxBytes } = this.#options
    if (this.#entries.size <= filesMax && this.#bytes <= mappedMaxBytes) return
    for (const [path, entry] of this.#entries) {
      if (entry.readers > 0) continue
      this.#forget(path, entry)
      entry.retire()
      if (this.#entries.size <= filesMax && this.#bytes <= mappedMaxBytes) return
    }
  }

  /** Lets go of every mapping; contents still open stay readable until they are closed. */
  close(): void {
    this.#pace.cancel()
    for (const entry of this.#entries.values()) entry.retire()
    this.#entries.clear()
    this.#bytes = 0
  }
}

const facts = new SmallFacts()

/** Whether the file at `path` is still the one that is open. Throws where the disk does not say. */
function isThere(path: string, { stamp, sizeBytes }: MappedContent): boolean {
  if (smallReads !== undefined) {
    return smallReads.look(path, facts) && isSameFile(stamp, facts) && sizeBytes === facts.sizeBytes
  }
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (found === undefined) return false
  return isSameFile(stamp, stampOf(found.ino, found.mtimeNs)) && found.size === BigInt(sizeBytes)
}
