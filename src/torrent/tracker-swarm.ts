import { FreeShares, type ReleaseShare } from '../actor/free-shares.js'
import type { PeerAddress } from './compact-peers.js'

interface Peer extends PeerAddress {
  readonly key: string
  seenMs: number
  /** Where it stands in the list. */
  at: number
  readonly leave: ReleaseShare
}

/**
 * The peers of one torrent at a tracker. Every question costs the same, however many there are. Networks share the places
 * (`FreeShares`), so that one of them cannot keep all others out.
 */
export class TrackerSwarm {
  /** In the order of their last announces. */
  readonly #peers = new Map<string, Peer>()
  /** In no order. */
  readonly #list: Peer[] = []
  /** How many ports of each address are there. */
  readonly #ports = new Map<string, number>()
  readonly #places: FreeShares

  constructor(max: number) {
    this.#places = new FreeShares(max)
  }

  get size(): number {
    return this.#list.length
  }

  /** Ports of this address. */
  portsOf(host: string): number {
    return this.#ports.get(host) ?? 0
  }

  /** Notes that a peer that is there was seen. False: it is not there. */
  see(address: PeerAddress, nowMs: number): boolean {
    const key = keyOf(address)
    const peer = this.#peers.get(key)
    if (peer === undefined) return false
    peer.seenMs = nowMs
    this.#peers.delete(key)
    this.#peers.set(key, peer)
    return true
  }

  /**
   * Adds a peer that is not there. Where there is no place for one more (also where `isFull` says so), the one whose last
   * announce is longest ago makes room: a place is held for an announce now and then, and many could hold all. False: its network
   * has its share.
   */
  add({ host, port }: PeerAddress, nowMs: number, isFull = false): boolean {
    let leave = isFull ? 'all' : this.#places.take(host)
    if (leave === 'all') {
      const [oldest] = this.#peers.values()
      if (oldest === undefined) return false
      this.#drop(oldest)
      leave = this.#places.take(host)
    }
    if (typeof leave === 'string') return false
    const key = keyOf({ host, port })
    const peer = { host, port, key, seenMs: nowMs, at: this.#list.length, leave }
    this.#peers.set(key, peer)
    this.#list.push(peer)
    this.#ports.set(host, this.portsOf(host) + 1)
    return true
  }

  /** False: it was not there. */
  remove(address: PeerAddress): boolean {
    const peer = this.#peers.get(keyOf(address))
    if (peer !== undefined) this.#drop(peer)
    return peer !== undefined
  }

  /** Removes those that were last seen before; how many. Those that stay are not looked at. */
  expire(beforeMs: number): number {
    const size = this.size
    for (const peer of this.#peers.values()) {
      if (peer.seenMs >= beforeMs) break
      this.#drop(peer)
    }
    return size - this.size
  }

  /** A random sample of at most `count` peers, without the one that announces. */
  sample(asker: PeerAddress, count: number): PeerAddress[] {
    const key = keyOf(asker)
    const chosen: Peer[] = []
    for (let at = 0; at < this.#list.length && chosen.length < count; at += 1) {
      const peer = this.#swap(at, at + Math.floor(Math.random() * (this.#list.length - at)))
      if (peer.key !== key) chosen.push(peer)
    }
    return chosen
  }

  #drop(peer: Peer): void {
    this.#swap(peer.at, this.#list.length - 1)
    this.#list.pop()
    peer.leave()
    this.#peers.delete(peer.key)
    const left = this.portsOf(peer.host) - 1
    if (left > 0) this.#ports.set(peer.host, left)
    else this.#ports.delete(peer.host)
  }

  /** Changes the places of two; the one that is at `one` now. */
  #swap(one: number, two: number): Peer {
    const [first, second] = [this.#list[one], this.#list[two]]
    if (first === undefined || second === undefined) throw new RangeError('there is no such peer')
    this.#list[one] = second
    this.#list[two] = first
    first.at = two
    second.at = one
    return second
  }
}

function keyOf({ host, port }: PeerAddress): string {
  return `${host} ${port}`
}
