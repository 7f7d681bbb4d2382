import { Backoff } from '../../actor/backoff.js'
import type { Clock } from '../../actor/clock.js'
import { FairSlots, type Release } from '../../actor/fair-slots.js'
import type { Requester } from '../../actor/requester.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Window } from '../source-messages.js'
import {
  faultOf,
  type LargeContent,
  type ObjectBody,
  type ObjectContent,
  type ObjectHead,
  type ObjectPage,
  type ObjectStore,
  type StoreFault,
} from './object-store.js'

export type StoreOperation = 'get' | 'head' | 'put' | 'list' | 'remove'
export type StoreOutcome = 'done' | 'absent' | 'refused' | 'failed'

/** Hears of every request to the store. */
export interface StoreMeters {
  ended(operation: StoreOperation, outcome: StoreOutcome, seconds: number): void
  received(bytes: number): void
  sent(bytes: number): void
}

/** A store may serve reads and refuse writes. */
export type StoreSide = 'read' | 'write'

export interface StoreGuardOptions {
  /** Requests under way, and that wait for their turn; more are refused at once. */
  readonly readsMax: number
  readonly readsWaitingMax: number
  readonly writesMax: number
  /** After so many failures in a row nothing is requested for `restMs`, twice as long each time. */
  readonly failuresMax: number
  readonly restMs: number
  readonly restMaxMs: number
}

export const guardDefaults: StoreGuardOptions = {
  readsMax: 64,
  readsWaitingMax: 256,
  writesMax: 4,
  failuresMax: 3,
  restMs: 1000,
  restMaxMs: 30_000,
}

/** While one request tries whether the store is well again, others wait for so long. */
const trialMs = 500

interface Side {
  readonly slots: FairSlots
  readonly rest: Backoff
  fault: StoreFault | undefined
}

/**
 * A store behind bounds: so many requests at once, by turns of clients; none while it fails; reads and writes apart. A body
 * occupies its slot until it is over.
 */
export class GuardedObjects implements ObjectStore {
  readonly #sides: Readonly<Record<StoreSide, Side>>

  constructor(
    private readonly inner: ObjectStore,
    options: StoreGuardOptions,
    private readonly meters: StoreMeters,
    private readonly clock: Clock,
  ) {
    const { readsMax, readsWaitingMax, writesMax } = options
    const side = (max: number, waitingMax: number): Side => {
      return {
        slots: new FairSlots({ max, waitingMax }),
        rest: new Backoff(options, clock),
        fault: undefined,
      }
    }
    this.#sides = { read: side(readsMax, readsWaitingMax), write: side(writesMax, 4 * writesMax) }
  }

  /** What a side fails of now. */
  fault(side: StoreSide): StoreFault | undefined {
    return this.#sides[side].fault
  }

  /** Milliseconds until a side is used again. */
  restMs(side: StoreSide): number {
    return this.#sides[side].rest.leftMs
  }

  /** It has failed so often in a row, and was not well since: what comes next is a trial. */
  isFailing(side: StoreSide): boolean {
    return this.#sides[side].rest.isDue
  }

  async get(key: string, window: Window | undefined, requester: Requester): Promise<ObjectBody | Refusal> {
    const { signal } = requester
    const slot = await this.#begin('read', requester)
    if (isRefusal(slot)) return slot
    const found = await this.#metered('get', 'read', signal, () => this.inner.get(key, window, requester))
    if (!isRefusal(found)) return this.#held(found, slot, signal)
    slot()
    return found
  }

  head(key: string, signal: AbortSignal): Promise<ObjectHead | Refusal> {
    return this.#whole('head', 'read', { signal }, () => this.inner.head(key, signal))
  }

  async put(key: string, content: ObjectContent, requester: Requester): Promise<'put' | 'exists' | Refusal> {
    const done = await this.#whole('put', 'write', requester, () => this.inner.put(key, content, requester))
    if (done === 'put') this.meters.sent(content.sizeBytes)
    return done
  }

  async putLarge(key: string, content: LargeContent, signal: AbortSignal): Promise<'put' | Refusal> {
    const done = await this.#whole('put', 'write', { signal }, () =>
      this.inner.putLarge(key, content, signal),
    )
    if (done === 'put') this.meters.sent(content.sizeBytes)
    return done
  }

  dropParts(
    prefix: string,
    isLeft: (key: string) => boolean,
    signal: AbortSignal,
  ): Promise<number | Refusal> {
    return this.#whole('list', 'write', { signal }, () => this.inner.dropParts(prefix, isLeft, signal))
  }

  get aheadMs(): number {
    return this.inner.aheadMs
  }

  list(prefix: string, after: string | undefined, signal: AbortSignal): Promise<ObjectPage | Refusal> {
    return this.#whole('list', 'read', { signal }, () => this.inner.list(prefix, after, signal))
  }

  remove(key: string, signal: AbortSignal): Promise<'removed' | Refusal> {
    return this.#whole('remove', 'write', { signal }, () => this.inner.remove(key, signal))
  }

  close(): Promise<void> {
    return this.inner.close()
  }

  async #begin(side: StoreSide, { client, signal }: Requester): Promise<Release | Refusal> {
    const { slots, rest } = this.#sides[side]
    if (rest.isOn) return refuse('busy', 'upstream', 'the object store failed; it is tried again soon')
    if (rest.isDue) rest.hold(trialMs)
    return slots.wait(client, signal)
  }

  async #whole<T>(
    operation: StoreOperation,
    side: StoreSide,
    requester: Requester,
    act: () => Promise<T | Refusal>,
  ): Promise<T | Refusal> {
    const slot = await this.#begin(side, requester)
    if (isRefusal(slot)) return slot
    try {
      return await this.#metered(operation, side, requester.signal, act)
    } finally {
      slot()
    }
  }

  async #metered<T>(
    operation: StoreOperation,
    side: StoreSide,
    signal: AbortSignal,
    act: () => Promise<T | Refusal>,
  ): Promise<T | Refusal> {
    const beganMs = this.clock.monotonic()
    const answer = await act()
    const outcome = isRefusal(answer) ? outcomeOf(answer) : 'done'
    this.meters.ended(operation, outcome, (this.clock.monotonic() - beganMs) / 1000)
    // That the caller left says nothing about the store.
    if (!signal.aborted) this.#note(side, isRefusal(answer) ? answer : undefined)
    return answer
  }

  #note(name: StoreSide, refusal: Refusal | undefined): void {
    const side = this.#sides[name]
    const fault = refusal === undefined ? undefined : faultOf(refusal)
    if (fault === undefined) side.rest.well()
    else side.rest.failed()
    const isShown = fault === undefined || side.rest.isDue || fault !== 'away'
    if (isShown) side.fault = fault
  }

  /** The same body, which gives its slot back when it is over. */
  #held(found: ObjectBody, slot: Release, signal: AbortSignal): ObjectBody {
    const { sizeBytes, contentType, metadata, part } = found
    return {
      sizeBytes,
      ...(contentType === undefined ? {} : { contentType }),
      ...(part === undefined ? {} : { part }),
      metadata,
      body: this.#pieces(found.body, slot, signal),
      drop: () => {
        found.drop()
        slot()
      },
    }
  }

  #pieces(
    body: AsyncIterable<Uint8Array | Refusal>,
    slot: Release,
    signal: AbortSignal,
  ): AsyncIterableIterator<Uint8Array | Refusal, undefined> {
    const inner = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array | Refusal, undefined>
    const seen = (piece: Uint8Array | Refusal): void => {
      if (!isRefusal(piece)) this.meters.received(piece.length)
      else if (!signal.aborted) this.#note('read', piece)
    }
    return new HeldPieces(inner, seen, slot)
  }
}

/** Pieces that pass through; the slot is given back behind the last one. No generator: it would cost more than all else here. */
class HeldPieces implements AsyncIterableIterator<Uint8Array | Refusal, undefined> {
  constructor(
    private readonly inner: AsyncIterator<Uint8Array | Refusal, undefined>,
    private readonly seen: (piece: Uint8Array | Refusal) => void,
    private readonly slot: Release,
  ) {}

  async next(): Promise<IteratorResult<Uint8Array | Refusal, undefined>> {
    const step = await this.inner.next()
    if (step.done === true) this.slot()
    else this.seen(step.value)
    return step
  }

  async return(): Promise<IteratorResult<Uint8Array | Refusal, undefined>> {
    this.slot()
    await this.inner.return?.()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

function outcomeOf(refusal: Refusal): StoreOutcome {
  if (refusal.refused === 'unknown' || refusal.refused === 'unsatisfiable') return 'absent'
  const fault = faultOf(refusal)
  return fault === undefined || fault === 'away' ? 'failed' : 'refused'
}
