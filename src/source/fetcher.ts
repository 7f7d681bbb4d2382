import type { Caller } from '../actor/address.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Reason, type Refusal, refuse } from '../format/refusal.js'
import type { Absences } from './absences.js'
import { Delivery, Slots } from './delivery.js'
import { Fetch } from './fetch.js'
import type { FetchParts, Opening } from './fetch-parts.js'
import type { ProgressTable } from './progress.js'
import type { Hints, Provenance, SourceProgress, SourceReply, SourceRequest } from './protocol.js'
import { stillUnknown } from './refusals.js'
import type { Soundness } from './soundness.js'
import type { Source } from './source.js'

export interface FetcherOptions {
  /** Transfers under way at once; one more is refused `busy`. */
  readonly fetchesMax: number
  /** A window this near behind what has arrived waits for the running transfer instead of opening its own. */
  readonly joinBytes: number
  /** Objects up to this size are fetched whole where the window starts within `joinBytes`. */
  readonly wholeForWindowMaxBytes: number
  /** True: this request may not be passed on to other gateways (loop defence). */
  readonly confined: (provenance: Provenance) => boolean
  /** Absent: what nobody knows is asked for each time. */
  readonly absences?: Absences
}

type Open = Extract<SourceRequest, { kind: 'open' }>
type Hearer = Caller<SourceProgress>

/** What a source that cannot say whether it has something answers. */
const failures: ReadonlySet<Reason> = new Set(['upstream', 'late', 'forged'])

/** A transfer that was begun, or why it was not. */
type Started =
  | { readonly fetch: Fetch; readonly fresh: true; readonly run: Promise<void> }
  | { readonly fetch: undefined; readonly fresh: Refusal; readonly run?: undefined }

interface Reader {
  readonly fetch: Fetch
  readonly caller: Hearer
}

/** Owner of every transfer: one per payload, however many readers there are. */
export class Fetcher {
  readonly #slots: Slots
  readonly #fetches = new Map<string, Fetch>()
  readonly #running = new Set<Promise<void>>()
  readonly #readers = new Map<number, Reader>()
  #lastReader = 0
  #stopping = false

  constructor(
    table: ProgressTable,
    private readonly parts: FetchParts,
    private readonly soundness: Soundness,
    private readonly options: FetcherOptions,
  ) {
    this.#slots = new Slots(table)
  }

  /** Slots held by readers and transfers. */
  get held(): number {
    return this.#slots.taken
  }

  /** Answers one message of an edge thread; `caller` hears of progress. */
  async handle(message: SourceRequest, caller: Hearer): Promise<SourceReply | undefined> {
    switch (message.kind) {
      case 'open':
        return this.#open(message, caller)
      case 'close':
        this.#leave(message.reader)
        return undefined
      case 'evict':
        return { kind: 'evicted', dropped: await this.parts.keeping.drop(message.digest) }
      case 'check': {
        const sound = await this.soundness.check(message.id, message.digest)
        return { kind: 'checked', sound }
      }
    }
  }

  /** An edge thread is gone: all its readers leave. */
  forget(caller: Hearer): void {
    for (const [reader, one] of [...this.#readers]) if (one.caller === caller) this.#leave(reader)
  }

  /**
   * Brings a payload into the store from `source`, for no reader. Resolves when it is there, or could not be had; nothing
   * happens where a transfer of it is under way.
   */
  async bring(id: Id, hints: Hints, source: Source): Promise<void> {
    const provenance = { hops: 0, via: [], forward: false }
    const request: Open = { kind: 'open', id, hints, provenance }
    if (this.#join(request) !== undefined) return
    const started = this.#start(request, { ...this.parts, source })
    await started.run
  }

  /** Refuses new transfers, stops those that are far from done, waits for the rest. */
  async stop(): Promise<void> {
    this.#stopping = true
    for (const fetch of this.#fetches.values()) {
      if (fetch.told === undefined) fetch.stop()
      else fetch.abandon()
    }
    while (this.#running.size > 0) await Promise.all(this.#running)
    for (const reader of [...this.#readers.keys()]) this.#leave(reader)
  }

  async #open(request: Open, caller: Hearer): Promise<SourceReply> {
    const { absences } = this.options
    // Who knows where to look is not answered from memory.
    const told = request.hints.rootId !== undefined
    if (!told && absences?.has(request.id) === true) return { kind: 'refused', refusal: stillUnknown() }
    const generation = this.parts.catalog.generation(request.id)
    const { fetch, fresh } = this.#join(request) ?? this.#start(request)
    if (fetch === undefined) return { kind: 'refused', refusal: fresh }
    this.#lastReader += 1
    const reader = this.#lastReader
    fetch.delivery.join(reader, caller)
    this.#readers.set(reader, { fetch, caller })
    const opening = await fetch.opening
    if (fresh) this.#recall(request, opening, generation)
    if (!isRefusal(opening)) return opened(reader, fetch, fetch.told ?? opening)
    this.#leave(reader)
    // Somebody else's transfer failed, and this request knows better where to look.
    const better = !fresh && request.hints.rootId !== undefined && request.hints !== fetch.wish.hints
    return better ? this.#open(request, caller) : { kind: 'refused', refusal: opening }
  }

  /** Remembers how a question ended, for the next one about the same id. */
  #recall({ id, provenance }: Open, opening: Opening | Refusal, generation: number): void {
    const { absences, confined } = this.options
    if (!isRefusal(opening)) absences?.note(id, 'found')
    else if (failures.has(opening.refused)) absences?.note(id, 'failed')
    // Where the request may not be passed on, not everyone was asked.
    else if (opening.refused === 'unknown' && !confined(provenance)) absences?.miss(id, generation)
  }

  /** A transfer under way that will do for this request. */
  #join(request: Open): { fetch: Fetch; fresh: false } | undefined {
    const confined = this.options.confined(request.provenance)
    const open = this.#fetches.get(key(request, false, false))
    // A confined request may be our own question coming back: waiting for the answer to it would be a circle.
    if (open !== undefined && (!confined || open.told !== undefined) && this.#reaches(open, request)) {
      return { fetch: open, fresh: false }
    }
    const own = [
      ...(confined ? [this.#fetches.get(key(request, confined, false))] : []),
      this.#fetches.get(key(request, confined, true)),
    ].find((fetch) => fetch !== undefined && this.#reaches(fetch, request))
    return own === undefined ? undefined : { fetch: own, fresh: false }
  }

  #reaches(fetch: Fetch, { window }: Open): boolean {
    if (fetch.delivery.state === 'broken') return false
    if (window === undefined || fetch.wish.window !== undefined || fetch.delivery.state === 'whole')
      return true
    return window.start <= fetch.delivery.readable + this.options.joinBytes
  }

  #start(request: Open, parts = this.parts): Started {
    // What only waits for the disk takes nothing from a source.
    const underWay = this.#running.size - this.parts.keeping.waiting
    if (this.#stopping || underWay >= this.options.fetchesMax) {
      return { fetch: undefined, fresh: refuse('busy', 'self', 'too many transfers are under way') }
    }
    const slot = this.#slots.take()
    if (slot === undefined) {
      return { fetch: undefined, fresh: refuse('busy', 'self', 'too many readers are under way') }
    }
    const { id, hints, provenance, window, named = false } = request
    const separate = window !== undefined && !this.#wholeInstead(request)
    const wish = { id, hints, provenance, named, ...(separate ? { window } : {}) }
    const fetch = new Fetch(wish, new Delivery(this.#slots.table, slot), parts)
    const name = key(request, this.options.confined(provenance), separate)
    this.#fetches.set(name, fetch)
    const run = fetch.run().finally(() => {
      if (this.#fetches.get(name) === fetch) this.#fetches.delete(name)
      this.#running.delete(run)
      if (fetch.delivery.readers === 0) this.#release(fetch)
    })
    this.#running.add(run)
    return { fetch, fresh: true, run }
  }

  /** A window near the start of an object that is cached, or small enough: the whole is as quick, and stays. Suspects too. */
  #wholeInstead({ id, window }: Open): boolean {
    if (this.parts.suspects.has(id)) return true
    const known = this.parts.catalog.attributes(id)
    if (known?.digest !== undefined && this.parts.catalog.blobSize(known.digest) !== undefined) return true
    if (window === undefined || window.start > this.options.joinBytes) return false
    return known === undefined || known.size <= this.options.wholeForWindowMaxBytes
  }

  #leave(reader: number): void {
    const found = this.#readers.get(reader)
    if (found === undefined) return
    this.#readers.delete(reader)
    const { fetch } = found
    fetch.delivery.leave(reader)
    if (fetch.delivery.readers > 0) return
    const name = [...this.#fetches].find(([, one]) => one === fetch)?.[0]
    if (name === undefined) this.#release(fetch)
    else if (!fetch.abandon()) this.#fetches.delete(name)
  }

  #release(fetch: Fetch): void {
    this.#slots.give(fetch.delivery.slot)
    void fetch.close()
  }
}

function key({ id, window }: Open, confined: boolean, separate: boolean): string {
  const part = separate && window !== undefined ? ` ${window.start}-${window.end}` : ''
  return `${id}${confined ? ' confined' : ''}${part}`
}

function opened(reader: number, fetch: Fetch, opening: Opening): SourceReply {
  return { kind: 'opened', reader, slot: fetch.delivery.slot, ...opening }
}
