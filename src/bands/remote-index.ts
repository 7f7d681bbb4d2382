import type { Clock } from '../actor/clock.js'
import { type CdbHeader, headerBytes, readHeader } from '../format/cdb64.js'
import { CdbLookup } from '../format/cdb64-lookup.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { orLate } from '../http/sender-pace.js'
import type { RangeBytes, Ranges } from './ranges.js'
import { type RootRecord, readPlace } from './root-record.js'

export interface RemoteOptions {
  /** Stretches remembered, some 500 bytes each. */
  readonly regionsMax: number
  readonly regionMs: number
  /** Requests to one index under way at once... */
  readonly concurrencyMax: number
  /** ...and how long one may wait for its turn. */
  readonly waitMs: number
  /** An index that failed gets no requests for so long. */
  readonly coolMs: number
  /** One stretch of a file, or a manifest, of a web server: one that takes longer is a failure. */
  readonly httpMs: number
  /** The same of content that the gateway brings itself. */
  readonly contentMs: number
}

/** 16 slots: half of them empty, so one read ends nearly every search. */
const windows = { slotBytes: 256, recordBytes: 512 }

/** Bounds the requests to one index: so many at once; the others wait in order, for a limited time. */
class Gate {
  #busy = 0
  readonly #waiting = new Set<(free: boolean) => void>()

  constructor(
    private readonly clock: Clock,
    private readonly max: number,
    private readonly waitMs: number,
  ) {}

  async run<T>(act: () => Promise<T>): Promise<T | Refusal> {
    if (this.#busy < this.max) this.#busy += 1
    else if (!(await this.#turn()))
      return refuse('busy', 'self', 'too many requests to one index are under way')
    try {
      return await act()
    } finally {
      const [next] = this.#waiting
      // The slot goes directly to the next waiting request, so that no new request can take it in between.
      if (next === undefined) this.#busy -= 1
      else next(true)
    }
  }

  #turn(): Promise<boolean> {
    // At most 16 times as many requests as are under way may wait: more would run into their time limit.
    if (this.#waiting.size >= this.max * 16) return Promise.resolve(false)
    return new Promise((resolve) => {
      const timer = this.clock.after(this.waitMs, () => end(false))
      const end = (free: boolean): void => {
        timer.cancel()
        this.#waiting.delete(end)
        resolve(free)
      }
      this.#waiting.add(end)
    })
  }
}

/** What was read of one index, and its rules. */
export class RemoteReads {
  readonly #gate: Gate
  readonly #regions = new Map<string, { readonly bytes: Uint8Array; readonly until: number }>()

  constructor(
    private readonly clock: Clock,
    private readonly options: RemoteOptions,
    /** For one stretch. */
    private readonly readMs: number,
  ) {
    this.#gate = new Gate(clock, options.concurrencyMax, options.waitMs)
  }

  /** A stretch of `of`, which has a name of its own. */
  async read(name: string, of: Ranges, start: number, end: number): Promise<Uint8Array | Refusal> {
    const key = `${name} ${start} ${end}`
    const known = this.#regions.get(key)
    const now = this.clock.monotonic()
    if (known !== undefined && known.until > now) return known.bytes
    this.#regions.delete(key)
    const read = await this.whole(of, start, end)
    if (isRefusal(read)) return read
    for (const oldest of this.#regions.keys()) {
      if (this.#regions.size < this.options.regionsMax) break
      this.#regions.delete(oldest)
    }
    this.#regions.set(key, { bytes: read.bytes, until: now + this.options.regionMs })
    return read.bytes
  }

  /** The same, not remembered here. */
  whole(of: Ranges, start: number, end: number): Promise<RangeBytes | Refusal> {
    const late = refuse('late', 'upstream', `an index did not give bytes ${start} to ${end} in time`)
    return this.#gate.run(() => orLate(of.read(start, end), this.readMs, late, this.clock))
  }
}

/**
 * A CDB64 file far away: its header is read once and kept, a search takes two reads (slots, record), fewer where they are
 * remembered. Its answer is a hint, which the caller checks.
 */
export class RemoteCdb {
  #opening: Promise<{ header: CdbHeader; sizeBytes: number } | Refusal> | undefined

  constructor(
    private readonly name: string,
    private readonly ranges: Ranges,
    private readonly reads: RemoteReads,
    /** Where it is known. */
    private readonly sizeBytes?: number,
  ) {}

  /** Where the item (32 bytes of id) is; undefined where this file does not know it. Never rejects. */
  async find(id: Uint8Array): Promise<RootRecord | undefined | Refusal> {
    this.#opening ??= this.#open()
    const opened = await this.#opening
    if (isRefusal(opened)) {
      this.#opening = undefined
      return opened
    }
    const lookup = new CdbLookup(windows)
    let step: ReturnType<CdbLookup['step']> = lookup.begin(opened.header, opened.sizeBytes, id)
    while (step === 'read') {
      const { position, length } = lookup
      const bytes = await this.reads.read(this.name, this.ranges, position, position + length)
      if (isRefusal(bytes)) return bytes
      lookup.buffer.set(bytes)
      step = lookup.step()
    }
    if (step === 'absent') return undefined
    const place = step === 'found' ? readPlace(lookup.buffer, lookup.valueStart, lookup.valueEnd) : undefined
    return place ?? refuse('malformed', 'upstream', `${this.name} is damaged or no index`)
  }

  async #open(): Promise<{ header: CdbHeader; sizeBytes: number } | Refusal> {
    const read = await this.reads.whole(this.ranges, 0, headerBytes)
    if (isRefusal(read)) return read
    if (this.sizeBytes !== undefined && this.sizeBytes !== read.sizeBytes) {
      return refuse('malformed', 'upstream', `${this.name} is not of ${this.sizeBytes} bytes`)
    }
    const header = readHeader(read.bytes, read.sizeBytes)
    if (header === undefined) return refuse('malformed', 'upstream', `${this.name} is no index`)
    return { header, sizeBytes: read.sizeBytes }
  }
}
