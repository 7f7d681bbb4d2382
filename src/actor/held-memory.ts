import { type Parties, partiesOf } from '../format/ip.js'
import { type Clock, systemClock } from './clock.js'
import { type Evictable, EvictionOrder } from './eviction-order.js'

/** So much of each request is not counted: there are no more of them than requests under way. */
const uncountedBytes = 16 * 1024
/** A request that is younger than this is not slow yet. */
const slowAfterMs = 3000
/** Bytes a second on average, below which a request is slow: 128 kbit/s. */
const slowPace = 16 * 1024
/** Requests that are compared at once. */
const looksMax = 64

/** What one request holds of a `HeldMemory`, which alone changes it. */
export class MemoryHolder implements Evictable {
  weight = 0
  isGone = false
  isPinned = false
  readonly places = 0
  readonly parties: Parties

  /** `isMovable`: what it holds can go to the disk, which ends nothing. */
  constructor(
    readonly client: string,
    readonly drop: () => void,
    readonly isMovable: boolean,
    readonly beganMs: number,
  ) {
    this.parties = partiesOf(client)
  }
}

/** What one request holds, by its own word. */
export class MemoryShare {
  #holder: MemoryHolder | undefined
  #isOver = false

  /**
   * `client`: whose it is, called once it is counted. `drop`: gives up what it holds, and calls `leave`; where `isMovable`, it
   * moves what it holds to the disk, and calls `resize` with what is left.
   */
  constructor(
    private readonly memory: HeldMemory,
    private readonly client: () => string,
    private readonly drop: () => void,
    private readonly isMovable = false,
  ) {}

  /** It has so many bytes now. False: there is no room for them. */
  resize(bytes: number): boolean {
    if (this.#isOver) return false
    if (this.#holder === undefined && bytes <= uncountedBytes) return true
    this.#holder ??= this.memory.enter(this.client(), this.drop, this.isMovable)
    return bytes === this.#holder.weight || this.memory.grow(this.#holder, bytes - this.#holder.weight)
  }

  /** From now on it makes no room for others: its bytes are at work. */
  pin(): void {
    if (this.#holder !== undefined) this.memory.pin(this.#holder)
  }

  /** It holds nothing any more. */
  leave(): void {
    this.#isOver = true
    if (this.#holder !== undefined) this.memory.leave(this.#holder)
  }
}

/**
 * Memory for what strangers send, as far as it has come, of all requests together. Where there is no room, what can be moved to
 * the disk is moved, for anybody: first of who holds most what has not grown for the longest time (`EvictionOrder`: providers,
 * networks and clients are compared). Of the rest, who holds most gives up the same, for who holds less; and who is slow, for who
 * is not: else many slow requests that hold as much as a usual one needs would keep all of these out.
 */
export class HeldMemory {
  readonly #order = new EvictionOrder<MemoryHolder>()
  readonly #movable = new EvictionOrder<MemoryHolder>()
  /** Those that can be ended, the one that was compared longest ago first. */
  readonly #endable = new Set<MemoryHolder>()
  #bytes = 0

  constructor(
    private readonly maxBytes: number,
    private readonly clock: Pick<Clock, 'monotonic'> = systemClock,
  ) {}

  /** Bytes that all bodies hold. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * One that holds nothing yet. `drop`: gives up what it holds: when it returns, `leave` was called, or `grow` with fewer bytes
   * where it is movable.
   */
  enter(client: string, drop: () => void, isMovable = false): MemoryHolder {
    return new MemoryHolder(client, drop, isMovable, this.clock.monotonic())
  }

  /**
   * Counts so many bytes more, or fewer. False: there is no room, and nothing was counted. One that is movable is to move what it
   * holds then.
   */
  grow(holder: MemoryHolder, bytes: number): boolean {
    while (bytes > 0 && this.#bytes + bytes > this.maxBytes) {
      const victim = this.#victimFor(holder, bytes)
      if (victim === undefined) return false
      const before = victim.weight
      victim.drop()
      if (!victim.isGone && victim.weight >= before)
        throw new Error('what a request held was dropped, and it still holds it')
    }
    if (holder.isGone) return false
    this.#count(holder, bytes)
    return true
  }

  /** It counts as before, but is not dropped any more. */
  pin(holder: MemoryHolder): void {
    holder.isPinned = true
    this.#endable.delete(holder)
    this.#orderOf(holder).remove(holder)
  }

  leave(holder: MemoryHolder): void {
    if (holder.isGone) return
    this.#bytes -= holder.weight
    holder.isGone = true
    this.#endable.delete(holder)
    this.#orderOf(holder).remove(holder)
  }

  #count(holder: MemoryHolder, bytes: number): void {
    holder.weight += bytes
    this.#bytes += bytes
    if (holder.isPinned) return
    this.#orderOf(holder).put(holder)
    if (!holder.isMovable) this.#endable.add(holder)
  }

  #orderOf(holder: MemoryHolder): EvictionOrder<MemoryHolder> {
    return holder.isMovable ? this.#movable : this.#order
  }

  /** Who can move. For one that can move itself nobody is ended. Else who has more than this one would: only then it is fair. */
  #victimFor(holder: MemoryHolder, bytes: number): MemoryHolder | undefined {
    const moved = this.#movable.forBytes()
    if (moved !== undefined && moved !== holder) return moved
    if (holder.isMovable) return undefined
    const victim = this.#order.forBytes()
    if (victim === undefined) return undefined
    const [most, own] = this.#order.compared(victim.parties, holder.parties) ?? [0, 0]
    return most > own + bytes ? victim : this.#slowOne(holder)
  }

  #slowOne(holder: MemoryHolder): MemoryHolder | undefined {
    const nowMs = this.clock.monotonic()
    if (isSlow(holder, nowMs)) return undefined
    let looks = 0
    for (const one of this.#endable) {
      if (isSlow(one, nowMs)) return one
      looks += 1
      if (looks === looksMax) return undefined
      this.#endable.delete(one)
      this.#endable.add(one)
    }
    return undefined
  }
}

function isSlow({ beganMs, weight }: MemoryHolder, nowMs: number): boolean {
  const ms = nowMs - beganMs
  return ms >= slowAfterMs && (weight * 1000) / ms < slowPace
}
