import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import { isNearAddress, type PeerAddress } from './compact-peers.js'

/** A peer that was named, and how it has behaved. */
export interface KnownPeer extends PeerAddress {
  /** Who named it first. */
  readonly source: string
  /** Not before. */
  retryMs: number
  /** It sent wrong bytes, does not have the torrent, or is this program itself: never tried again. */
  isBad: boolean
  /** Whether the next connection is tried encrypted. */
  isEncrypted: boolean
  /** Failed connections in a row. */
  failures: number
}

export interface KnownPeersOptions {
  /** Peers remembered. */
  readonly max: number
  /** How many of them one source may name: a tracker's answer has 50 to 200. */
  readonly eachMax: number
  /** Ports of one public address: a source that names many of them may want us to flood that address with connections. */
  readonly portsMax: number
  /** After so many failures in a row a peer is removed where other peers are named... */
  readonly failuresMax: number
  /** ...and is not added again for so long, whoever names it. Also the longest time between two tries. */
  readonly silentMs: number
}

export const knownPeersDefaults: KnownPeersOptions = {
  max: 500,
  eachMax: 200,
  portsMax: 4,
  failuresMax: 2,
  silentMs: 300_000,
}

/** Most removed peers remembered. */
const silentMax = 2000

function keyOf({ host, port }: PeerAddress): string {
  return `${host} ${port}`
}

/**
 * The peers of one torrent, by who named them (a tracker, the table, another peer). Sources take turns, and a source
 * that names more than its share loses peers to others. So a source that lies costs some tries, but cannot displace
 * the peers of others.
 */
export class KnownPeers {
  readonly #known = new Map<string, KnownPeer>()
  /** Keyed by source; those to be tried next come first. */
  readonly #sources = new Map<string, Set<string>>()
  readonly #silent = new BoundedMap<string, number>(silentMax)

  constructor(
    private readonly options: KnownPeersOptions,
    private readonly clock: Clock,
  ) {}

  get size(): number {
    return this.#known.size
  }

  /** `source` names a peer. Nothing happens where it is known, lately did not answer, or its source has its share. */
  add(source: string, address: PeerAddress, isEncrypted: boolean): void {
    const key = keyOf(address)
    if (this.#known.has(key) || this.#isSilent(key) || this.#portsOf(address.host) >= this.options.portsMax)
      return
    const ofSource = this.#sources.get(source) ?? new Set()
    if (ofSource.size >= this.options.eachMax && !this.#leaveSilent(ofSource)) return
    if (this.#known.size >= this.options.max && !this.#makeRoom(ofSource.size)) return
    const { host, port } = address
    this.#known.set(key, { host, port, source, retryMs: 0, isBad: false, isEncrypted, failures: 0 })
    this.#sources.set(source, ofSource.add(key))
  }

  find(address: PeerAddress): KnownPeer | undefined {
    return this.#known.get(keyOf(address))
  }

  /** The peer could not be reached, or sent nothing. It is tried again in `againMs`, which doubles with each failure. */
  failed(peer: KnownPeer, againMs: number): void {
    const waitMs = Math.min(againMs * 2 ** Math.min(peer.failures, 10), this.options.silentMs)
    peer.retryMs = this.clock.monotonic() + waitMs
    peer.failures += 1
  }

  /** A peer that may be tried now and is not in `taken`, the sources in turn; it is last in its source afterwards. */
  next(taken: ReadonlySet<string>): KnownPeer | undefined {
    const now = this.clock.monotonic()
    for (const [source, keys] of [...this.#sources]) {
      for (const key of keys) {
        const peer = this.#known.get(key)
        if (peer === undefined || peer.isBad || peer.retryMs > now || taken.has(key)) continue
        keys.delete(key)
        keys.add(key)
        this.#sources.delete(source)
        this.#sources.set(source, keys)
        return peer
      }
    }
    return undefined
  }

  /** True where `next` would give one. */
  hasNext(taken: ReadonlySet<string>): boolean {
    const now = this.clock.monotonic()
    for (const [key, { isBad, retryMs }] of this.#known) {
      if (!isBad && retryMs <= now && !taken.has(key)) return true
    }
    return false
  }

  /** Removes one of `keys` that failed too often, and does not add it again for `silentMs`. False where there is none. */
  #leaveSilent(keys: Iterable<string>): boolean {
    for (const key of keys) {
      const peer = this.#known.get(key)
      if (peer === undefined || (!peer.isBad && peer.failures < this.options.failuresMax)) continue
      this.#drop(key)
      this.#silent.set(key, this.clock.monotonic() + this.options.silentMs)
      return true
    }
    return false
  }

  /**
   * Removes a peer that failed too often, or else one of the source that has most, where that source has more than
   * `held` + 1.
   */
  #makeRoom(held: number): boolean {
    if (this.#leaveSilent(this.#known.keys())) return true
    let largest: Set<string> | undefined
    for (const keys of this.#sources.values()) {
      if (largest === undefined || keys.size > largest.size) largest = keys
    }
    if (largest === undefined || largest.size <= held + 1) return false
    // Keys are in the order in which they will be tried, so the last one was tried or added most recently.
    const last = [...largest].at(-1)
    if (last !== undefined) this.#drop(last)
    return true
  }

  #drop(key: string): void {
    const peer = this.#known.get(key)
    if (peer === undefined) return
    this.#known.delete(key)
    const keys = this.#sources.get(peer.source)
    keys?.delete(key)
    if (keys?.size === 0) this.#sources.delete(peer.source)
  }

  #isSilent(key: string): boolean {
    const untilMs = this.#silent.get(key)
    if (untilMs === undefined) return false
    if (untilMs > this.clock.monotonic()) return true
    this.#silent.delete(key)
    return false
  }

  #portsOf(host: string): number {
    if (isNearAddress(host)) return 0
    let ports = 0
    for (const known of this.#known.values()) if (known.host === host) ports += 1
    return ports
  }
}
