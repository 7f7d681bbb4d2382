import { type Parties, partiesOf } from '../format/ip.js'
import { type Evictable, EvictionOrder } from './eviction-order.js'

/** So much of each request is not counted: there are no more of them than requests under way. */
const uncountedBytes = 16 * 1024

/** What one request holds of a `HeldMemory`, which alone changes it. */
export class MemoryHolder implements Evictable {
  weight = 0
  isGone = false
  isSettled = false
  readonly places = 0
  readonly parties: Parties

  constructor(
    readonly client: string,
    readonly drop: () => void,
  ) {
    this.parties = partiesOf(client)
  }
}

/** What one request holds, by its own word. */
export class MemoryShare {
  #holder: MemoryHolder | undefined
  #isOver = false

  /** `client`: whose it is, called once it is counted. `drop`: gives up what it holds, and calls `leave`. */
  constructor(
    private readonly memory: HeldMemory,
    private readonly client: () => string,
    private readonly drop: () => void,
  ) {}

  /** It has so many bytes now. False: there is no room for them. */
  hold(bytes: number): boolean {
    if (this.#isOver) return false
    if (this.#holder === undefined && bytes <= uncountedBytes) return true
    this.#holder ??= this.memory.enter(this.client(), this.drop)
    return bytes === this.#holder.weight || this.memory.grow(this.#holder, bytes - this.#holder.weight)
  }

  /** From now on it makes no room for others: its bytes are at work. */
  settle(): void {
    if (this.#holder !== undefined) this.memory.settle(this.#holder)
  }

  /** It holds nothing any more. */
  leave(): void {
    this.#isOver = true
    if (this.#holder !== undefined) this.memory.leave(this.#holder)
  }
}

/**
 * Memory for what strangers send, as far as it has come, of all requests together. Where there is no room, who holds most gives
 * up what has not grown for the longest time (`EvictionOrder`: providers, networks and clients are compared), for who holds less.
 */
export class HeldMemory {
  readonly #order = new EvictionOrder<MemoryHolder>()
  #bytes = 0

  constructor(private readonly maxBytes: number) {}

  /** Of all. */
  get bytes(): number {
    return this.#bytes
  }

  /** One that holds nothing yet. `drop`: gives up what it holds, which means that `leave` was called when this returns. */
  enter(client: string, drop: () => void): MemoryHolder {
    return new MemoryHolder(client, drop)
  }

  /** Counts so many bytes more, or fewer. False: there is no room, and nothing was counted. */
  grow(holder: MemoryHolder, bytes: number): boolean {
    while (bytes > 0 && this.#bytes + bytes > this.maxBytes) {
      const victim = this.#victimFor(holder, bytes)
      if (victim === undefined) return false
      victim.drop()
      if (!victim.isGone) throw new Error('what a request held was dropped, and it still holds it')
    }
    if (holder.isGone) return false
    this.#count(holder, bytes)
    return true
  }

  /** It counts as before, but is not dropped any more. */
  settle(holder: MemoryHolder): void {
    holder.isSettled = true
    this.#order.remove(holder)
  }

  leave(holder: MemoryHolder): void {
    if (holder.isGone) return
    this.#bytes -= holder.weight
    holder.isGone = true
    this.#order.remove(holder)
  }

  #count(holder: MemoryHolder, bytes: number): void {
    holder.weight += bytes
    this.#bytes += bytes
    if (!holder.isSettled) this.#order.put(holder)
  }

  /** Who holds more than this one would: only then it is fair. */
  #victimFor(holder: MemoryHolder, bytes: number): MemoryHolder | undefined {
    const victim = this.#order.forBytes()
    if (victim === undefined) return undefined
    const [most, own] = this.#order.compared(victim.parties, holder.parties) ?? [0, 0]
    return most > own + bytes ? victim : undefined
  }
}
