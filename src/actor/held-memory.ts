import { type Parties, partiesOf } from '../format/ip.js'
import { type Evictable, EvictionOrder } from './eviction-order.js'

/** What one request holds of a `HeldMemory`, which alone changes it. */
export class MemoryHolder implements Evictable {
  weight = 0
  isGone = false
  readonly places = 0
  readonly parties: Parties

  constructor(
    readonly client: string,
    readonly drop: () => void,
  ) {
    this.parties = partiesOf(client)
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

  /** Counts so many bytes more. False: there is no room, and nothing was counted. */
  grow(holder: MemoryHolder, bytes: number): boolean {
    while (this.#bytes + bytes > this.maxBytes) {
      const victim = this.#victimFor(holder, bytes)
      if (victim === undefined) return false
      victim.drop()
      if (!victim.isGone) throw new Error('what a request held was dropped, and it still holds it')
    }
    if (holder.isGone) return false
    this.#count(holder, bytes)
    return true
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
    this.#order.put(holder)
  }

  /** Who holds more than this one would: only then it is fair. */
  #victimFor(holder: MemoryHolder, bytes: number): MemoryHolder | undefined {
    const victim = this.#order.forBytes()
    if (victim === undefined) return undefined
    const [most, own] = this.#order.compared(victim.parties, holder.parties) ?? [0, 0]
    return most > own + bytes ? victim : undefined
  }
}
