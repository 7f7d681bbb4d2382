import type { Clock } from '../actor/clock.js'
import { FairSlots } from '../actor/fair-slots.js'
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
  /** Requests to one index under way at once. 16 times as many may wait; clients take turns. */
  readonly concurrencyMax: number
  /** How long a request may wait for its turn. */
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

/** What was read of one index, and its rules. */
export class RemoteReads {
  readonly #slots: FairSlots
  readonly #regions = new Map<string, { readonly bytes: Uint8Array; readonly until: number }>()

  constructor(
    private readonly clock: Clock,
    private readonly options: RemoteOptions,
    /** Longest time of reading one stretch. */
    private readonly readMs: number,
  ) {
    const { concurrencyMax: max } = options
    this.#slots = new FairSlots({ max, waitingMax: max * 16, clock })
  }

  /** A stretch of `of`, which has a name of its own. `client`: whose turn it takes. */
  async read(
    name: string,
    of: Ranges,
    start: number,
    end: number,
    client: string,
  ): Promise<Uint8Array | Refusal> {
    const key = `${name} ${start} ${end}`
    const known = this.#regions.get(key)
    const now = this.clock.monotonic()
    if (known !== undefined && known.until > now) return known.bytes
    this.#regions.delete(key)
    const read = await this.whole(of, start, end, client)
    if (isRefusal(read)) return read
    for (const oldest of this.#regions.keys()) {
      if (this.#regions.size < this.options.regionsMax) break
      this.#regions.delete(oldest)
    }
    this.#regions.set(key, { bytes: read.bytes, until: now + this.options.regionMs })
    return read.bytes
  }

  /** The same, not remembered here. What all clients need is read for none of them. */
  async whole(of: Ranges, start: number, end: number, client = ''): Promise<RangeBytes | Refusal> {
    const slot = await this.#slots.waitFor(client, this.options.waitMs, this.clock)
    if (isRefusal(slot)) return refuse('busy', 'self', 'too many requests to one index are under way')
    const late = refuse('late', 'upstream', `an index did not give bytes ${start} to ${end} in time`)
    try {
      return await orLate(of.read(start, end), this.readMs, late, this.clock)
    } finally {
      slot()
    }
  }
}

interface OpenedCdb {
  readonly header: CdbHeader
  readonly sizeBytes: number
}

/**
 * A CDB64 file far away: its header is read once and kept, a search takes two reads (slots, record), fewer where they are
 * remembered. Its answer is a hint, which the caller checks.
 */
export class RemoteCdb {
  #opening: Promise<OpenedCdb | Refusal> | undefined

  constructor(
    private readonly name: string,
    private readonly ranges: Ranges,
    private readonly reads: RemoteReads,
    /** Where it is known. */
    private readonly sizeBytes?: number,
  ) {}

  /** Reads the header, which all ids need, where it is not known. Never rejects. */
  async open(): Promise<OpenedCdb | Refusal> {
    this.#opening ??= this.#readHeader()
    const opened = await this.#opening
    if (isRefusal(opened)) this.#opening = undefined
    return opened
  }

  /** Reads the header again, which shows whether the file can be read, whatever failed for one id. */
  async reopen(): Promise<OpenedCdb | Refusal> {
    const opened = await this.#readHeader()
    this.#opening = isRefusal(opened) ? undefined : Promise.resolve(opened)
    return opened
  }

  /** Where the item (32 bytes of id) is; undefined where this file does not know it. Reads take turns. Never rejects. */
  async find(id: Uint8Array, client: string): Promise<RootRecord | undefined | Refusal> {
    const opened = await this.open()
    if (isRefusal(opened)) return opened
    const lookup = new CdbLookup(windows)
    let step: ReturnType<CdbLookup['step']> = lookup.begin(opened.header, opened.sizeBytes, id)
    while (step === 'read') {
      const { position, length } = lookup
      const bytes = await this.reads.read(this.name, this.ranges, position, position + length, client)
      if (isRefusal(bytes)) return bytes
      lookup.buffer.set(bytes)
      step = lookup.step()
    }
    if (step === 'absent') return undefined
    const place = step === 'found' ? readPlace(lookup.buffer, lookup.valueStart, lookup.valueEnd) : undefined
    return place ?? refuse('malformed', 'upstream', `${this.name} is damaged or no index`)
  }

  async #readHeader(): Promise<OpenedCdb | Refusal> {
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
