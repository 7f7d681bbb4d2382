import { formatIp, type IpRange, isInRange, maskIp, parseIp, parseIpRange } from '../format/ip.js'
import { ownText } from '../format/own-text.js'
import type { Request } from '../http/exchange.js'
import type { CacheLimits } from '../http/response-cache.js'
import { Key, type Secret } from './bucket-key.js'

export interface ClientOptions {
  /** Addresses and ranges of proxies whose headers about the client are believed; empty: none. */
  readonly trustedProxies: readonly string[]
  /** Addresses and ranges that are never limited. */
  readonly exempt: readonly string[]
  /**
   * IPv6 clients with the same first bits share a bucket, because a subscriber gets a /64 or more, not a single
   * address.
   */
  readonly ipv6PrefixBits: number
}

/** Whom a bucket belongs to. */
export interface Client {
  /** Canonical address, cut to the prefix that buckets go by. */
  readonly address: string
  /** The same, uncut. */
  readonly exact: string
  readonly key: Key
  readonly exempt: boolean
}

interface Seen {
  readonly client: Client
  /** A trusted proxy: the entry to its left in the header is looked at next. */
  readonly trusted: boolean
}

/** Addresses remembered, twice: about 400 bytes each. */
const seenMax = 8192

/**
 * Entries of the header that are read, from the right. No real chain of proxies is longer; the rest was written by
 * the client.
 */
const hopsMax = 32

/**
 * Tells whose bucket a request is charged to. Only a trusted proxy is believed: behind it, the client is the nearest
 * address of X-Forwarded-For, from the right, that is not itself a trusted proxy. Where there is none, it is the
 * farthest proxy; where there is no such header, X-Real-IP counts. An entry that is no address ends the search:
 * everything to its left may have been written by the client.
 */
export class Clients {
  #trusted: readonly IpRange[] = []
  #exempt: readonly IpRange[] = []
  readonly #ipv6PrefixBits: number
  #young = new Map<string, Seen | undefined>()
  #old: ReadonlyMap<string, Seen | undefined> = new Map()
  readonly #nobody: Seen

  /** Throws on a malformed range: the start must end. */
  constructor(
    options: ClientOptions,
    private readonly secret: Secret,
  ) {
    this.#ipv6PrefixBits = options.ipv6PrefixBits
    this.use(options)
    const nobody = {
      address: 'unknown',
      exact: 'unknown',
      key: Key.ofWords(new Int32Array(4), secret),
      exempt: false,
    }
    this.#nobody = { client: nobody, trusted: false }
  }

  /** From now on these proxies are believed, and these clients never limited. Throws on a malformed range, before any change. */
  use({ trustedProxies, exempt }: Pick<ClientOptions, 'trustedProxies' | 'exempt'>): void {
    const ranges = [trustedProxies.map(rangeOf), exempt.map(rangeOf)] as const
    this.#trusted = ranges[0]
    this.#exempt = ranges[1]
    this.#young = new Map()
    this.#old = new Map()
  }

  /** The same rules for a server that finds clients by itself (native/server/limits.h). */
  get borrowed(): Pick<CacheLimits, 'secret' | 'ipv6PrefixBits' | 'trusted' | 'exempt'> {
    const ipv6PrefixBits = this.#ipv6PrefixBits
    return { secret: this.secret, ipv6PrefixBits, trusted: this.#trusted, exempt: this.#exempt }
  }

  /** The client of a request. One look-up for direct connections. */
  of(request: Pick<Request, 'remoteAddress' | 'header'>): Client {
    const socket = this.#find(request.remoteAddress) ?? this.#nobody
    if (!socket.trusted) return socket.client
    const forwarded = request.header('x-forwarded-for')
    const named = forwarded === undefined ? undefined : this.#walk(forwarded)
    if (named !== undefined) return named.client
    const real = forwarded === undefined ? request.header('x-real-ip') : undefined
    return ((real === undefined ? undefined : this.#entry(real)) ?? socket).client
  }

  /** Whether the connection is its client's own: behind a trusted proxy many share one. */
  isDirect(request: Request): boolean {
    return this.#find(request.remoteAddress)?.trusted === false
  }

  /** The client behind a textual address; undefined where it is none. */
  at(address: string): Client | undefined {
    return this.#find(address)?.client
  }

  #walk(forwarded: string): Seen | undefined {
    let farthest: Seen | undefined
    let end = forwarded.length
    for (let hops = 0; hops < hopsMax && end > 0; hops += 1) {
      const comma = forwarded.lastIndexOf(',', end - 1)
      const text = forwarded.slice(comma + 1, end).trim()
      end = comma
      // Lists may have empty places (RFC 9110 section 5.6.1).
      if (text === '') continue
      const seen = this.#entry(text)
      if (seen === undefined) break
      farthest = seen
      if (!seen.trusted) break
    }
    return farthest
  }

  /** An entry may bear a port, and an IPv6 address its brackets (RFC 7239 section 6 has the same forms). */
  #entry(text: string): Seen | undefined {
    const plain = this.#find(text)
    if (plain !== undefined || text.length > 64) return plain
    const found = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::\d{1,5})?$/.exec(text)
    return found === null ? undefined : this.#find(found[1] ?? found[2] ?? '')
  }

  #find(text: string): Seen | undefined {
    const known = this.#young.get(text)
    if (known !== undefined) return known
    if (text.length > 64) return undefined
    const seen = this.#old.get(text) ?? this.#look(text)
    if (seen === undefined) return undefined
    if (this.#young.size >= seenMax) {
      this.#old = this.#young
      this.#young = new Map()
    }
    // What it was cut from, a header of many addresses, is not kept.
    this.#young.set(ownText(text), seen)
    return seen
  }

  #look(text: string): Seen | undefined {
    const found = parseIp(text)
    if (found === undefined) return undefined
    const { words, v4 } = found
    const cut = v4 ? words : maskIp(words, this.#ipv6PrefixBits)
    const exempt = this.#exempt.some((range) => isInRange(range, words))
    const address = formatIp(cut)
    const exact = v4 ? address : formatIp(words)
    const client = { address, exact, key: Key.ofWords(cut, this.secret), exempt }
    return { client, trusted: this.#trusted.some((range) => isInRange(range, words)) }
  }
}

function rangeOf(text: string): IpRange {
  const range = parseIpRange(text)
  if (range === undefined) throw new Error(`not an address or range: ${text}`)
  return range
}
