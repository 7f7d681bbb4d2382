import type { BorrowedKey } from '../../native/ed25519/ed25519.js'
import {
  answerNumbers,
  answerPrice,
  answerTextMax,
  type CacheTable,
  conditionNumbers,
  conditionsMax,
  count as counts,
  number,
  rule,
} from '../../native/server/cache-table.js'
import type { Wire } from '../../native/server/wire.js'
import type { Cell } from '../actor/shared.js'
import type { SipSecret } from '../format/half-sip-hash.js'
import type { IpRange } from '../format/ip.js'

/** The response cache of a server: its size, and which requests it answers. */
export interface ResponseCacheOptions {
  /** Memory for them. */
  readonly maxBytes: number
  /** Header lines that change none of them (native/server/plain-lines.h). */
  readonly plain: readonly string[]
  /** Hears of some of them: milliseconds since 1970, bytes of the body, answers since the one before, path. */
  readonly onSample: (ms: number, bytes: number, count: number, path: string) => void
  /** Absent: no answer that has a price is cached. */
  readonly limits?: CacheLimits | undefined
  /** Absent: an answer is over with its signature. */
  readonly signing?: CacheSigning | undefined
  /**
   * Shared memory that the threads of this program have in common and nobody else has: what one of them has cached, the others
   * answer, too. Absent: each decides for itself.
   */
  readonly group?: Int32Array | undefined
}

/** With what the server signs answers anew that are the same but for the second, or for HEAD in place of GET. */
export interface CacheSigning {
  readonly key: BorrowedKey
  /** So old may a signature be when it goes out. */
  readonly reuseSeconds: number
}

/** One kind of buckets in memory that all threads share (src/admission/bucket-table.ts). */
export interface BorrowedBuckets {
  /** All of the table. Shared memory. */
  readonly words: Int32Array
  readonly blocks: number
}

/** What the server needs to take the tokens of an answer by itself. */
export interface CacheLimits {
  readonly ip: BorrowedBuckets
  readonly resource: BorrowedBuckets
  /** The key of the hash by which buckets of clients are placed. */
  readonly secret: SipSecret
  /** IPv6 clients with the same first bits share a bucket. */
  readonly ipv6PrefixBits: number
  /** Proxies whose X-Forwarded-For is believed. */
  readonly trusted: readonly IpRange[]
  /** Clients that are never limited. */
  readonly exempt: readonly IpRange[]
  /** Places in `meters`: answers that were judged, tokens taken from clients, and from resources. */
  readonly meters: Float64Array
  readonly requests: number
  readonly ipTokens: number
  readonly resourceTokens: number
}

/**
 * What limits make of an answer: there are none; it is free for everybody; or its bytes are taken from the client's bucket and
 * from the one with this key.
 */
export type AnswerPrice = 'none' | 'free' | { readonly one: number; readonly two: number }

/** Which bytes are believed to be in memory, so that they can be read without waiting for the disk. */
export interface ResidentCells {
  /** The tick until which each `cellBytes` are believed. Shared memory. */
  readonly cells: Int32Array
  readonly cellBytes: number
  /** The present tick, and for how many a belief lasts. Shared memory. */
  readonly ticks: { readonly numbers: Int32Array }
}

/** Memory that bodies lie in. */
export interface BodyMemory {
  /** The object by which it is recognized. */
  readonly owner: object
  readonly memory: Uint8Array
  /** What is believed of it. */
  readonly here: ResidentCells
  /** The same number on all threads that have these bytes in memory, from 1 on, for as long as they share answers. */
  readonly key?: number | undefined
  /** Calls `act` before the memory goes. */
  onGone(act: () => void): void
  /** The memory stays until the function is called that this gives. To be called in `act`, too. */
  hold(): () => void
}

/** Where answers of one kind are counted: places in the memory of the meters. */
export interface CountPlaces {
  readonly meters: Float64Array
  readonly whole: number
  /** Not whole, for whatever reason; then by reason. */
  readonly aborted: number
  readonly left: number
  readonly stalled: number
  readonly broken: number
  /** Bytes of bodies. */
  readonly bytes: number
  readonly hits: number
  readonly cached: number
  /** Names that were known. Absent: none was requested. */
  readonly names?: number
  /** The first of one more buckets than there are bounds, in seconds; the sum of them follows. */
  readonly buckets: number
  readonly bounds: readonly number[]
  /** The same number on all threads that share answers, from 1 on. */
  readonly kind?: number
}

/** The answer to all requests of a method, host and path that have plain header lines only, while its conditions hold. */
export interface CachedAnswer {
  /** The whole; the 304 to the client that sends `tag`; or any one range. */
  readonly variant: 'whole' | 'unchanged' | 'part'
  readonly method: 'GET' | 'HEAD'
  /** The value of the Host line, as it was sent; '' where there was none. */
  readonly host: string
  readonly path: string
  /** A name to be shown in front of the path in samples; '' where there is none. */
  readonly shown: string
  /** Header lines with another value than the plain ones may change it. */
  readonly isStrict: boolean
  readonly tag: string
  /** The head before and after the request's id. */
  readonly before: string
  readonly after: string
  /** First and last second in which the head may be sent. */
  readonly fromSeconds: number
  readonly untilSeconds: number
  readonly sizeBytes: number
  readonly body: BodyMemory
  /** Where in the memory the content begins. */
  readonly offset: number
  /** Least and most value that each must have. */
  readonly conditions: readonly (readonly [cell: Cell, least: number, most: number])[]
  /** Set whenever the answer is given. Absent: nothing is. */
  readonly requested?: (Cell & { readonly bit: number }) | undefined
  readonly tally: CountPlaces
  readonly price: AnswerPrice
}

/** Share of the memory. Beyond it, an answer with one request must not evict answers with several. */
const roomShare = 0.9

const variants = { whole: 0, unchanged: 1, part: 2 } as const

function placesIn(given: CountPlaces): Float64Array {
  const places = new Float64Array(counts.buckets + 1)
  for (const [name, at] of Object.entries(counts) as [keyof typeof counts, number][])
    places[at] = given[name] ?? -1
  return places
}

function rangesIn(ranges: readonly IpRange[]): Int32Array {
  return Int32Array.from(ranges.flatMap(({ words, bits }) => [...words, bits]))
}

function listsOf({ trusted, exempt }: Pick<CacheLimits, 'trusted' | 'exempt'>): {
  readonly trusted: Int32Array
  readonly exempt: Int32Array
} {
  return { trusted: rangesIn(trusted), exempt: rangesIn(exempt) }
}

/** Fills the response cache of a server, which answers from it without a call into JavaScript. */
export class ResponseCache {
  readonly #wire: Wire
  readonly #table: CacheTable
  readonly #numbers = new Float64Array(answerNumbers)
  readonly #cells = new WeakMap<Int32Array, number>()
  readonly #tallies = new WeakMap<CountPlaces, number>()
  readonly #regions = new WeakMap<object, number>()
  /** Regions whose files are closed, and that answers are still sent out of: what lets their memory go. */
  readonly #leaving = new Map<number, () => void>()

  constructor(
    wire: Wire,
    table: CacheTable,
    private readonly options: ResponseCacheOptions,
  ) {
    this.#wire = wire
    this.#table = table
    if (options.limits !== undefined) this.#limit(options.limits)
    if (options.signing !== undefined) table.signs(options.signing.key, options.signing.reuseSeconds)
    if (options.group !== undefined) table.share(options.group)
  }

  /** An answer may be offered at its first request, because there is room without evicting another. As of the last second. */
  hasRoom = true

  /** Answers that the server has, and the memory that they take. */
  get usage(): { readonly answers: number; readonly bytes: number } {
    const [answers, bytes] = this.#table.usage()
    return { answers, bytes }
  }

  /** Some client has not taken all of its answer yet. */
  get isSending(): boolean {
    return this.#table.usage()[2] > 0
  }

  /** From now on the server may give this answer by itself. */
  put(answer: CachedAnswer): void {
    const { host, path, tag, before, after, shown, conditions, requested, price } = answer
    if (price !== 'none' && this.options.limits === undefined) return
    const key = typeof price === 'string' ? { one: 0, two: 0 } : price
    const texts = [host, path, tag, before, after, shown]
    const textBytes = texts.reduce((sum, text) => sum + text.length, 0)
    if (textBytes > answerTextMax || conditions.length > conditionsMax) return
    const { outbox } = this.#wire
    let end = 0
    for (const text of texts) end += outbox.write(text, end, 'latin1')
    const to = this.#numbers
    to.set([
      variants[answer.variant],
      answer.method === 'HEAD' ? 1 : 0,
      answer.isStrict ? 1 : 0,
      ...texts.map((text) => text.length),
      this.#regionOf(answer.body),
      answer.offset,
      answer.sizeBytes,
      answer.method === 'GET' && answer.variant !== 'unchanged' ? 1 : 0,
      Math.max(0, answer.fromSeconds),
      Math.min(Number.MAX_SAFE_INTEGER - 1, answer.untilSeconds),
      requested === undefined ? -1 : this.#cellsOf(requested.cells),
      requested?.at ?? 0,
      requested?.bit ?? 0,
      this.#tallyOf(answer.tally),
      typeof price === 'string' ? answerPrice[price] : answerPrice.tokens,
      key.one,
      key.two,
      conditions.length,
    ])
    let at: number = number.first
    for (const [{ cells, at: place }, least, most] of conditions) {
      to[at] = this.#cellsOf(cells)
      to[at + 1] = place
      to[at + 2] = least
      to[at + 3] = most
      at += conditionNumbers
    }
    this.#table.put(to, end)
  }

  /**
   * Reports what was sent since the last call, and lets memory go that nothing is sent out of any more. To be called each second.
   */
  reportSamples(): void {
    for (const [region, letGo] of this.#leaving) {
      if (!this.#table.close(region)) continue
      this.#leaving.delete(region)
      letGo()
    }
    this.hasRoom = this.usage.bytes < this.options.maxBytes * roomShare
    for (const [ms, bytes, count, path] of this.#table.samples())
      this.options.onSample(ms, bytes, count, path)
  }

  /** From now on clients are distinguished by these lists, also on connections that are open. */
  useClients(lists: Pick<CacheLimits, 'trusted' | 'exempt'>): void {
    if (this.options.limits !== undefined) this.#table.clients(listsOf(lists))
  }

  /** The server has ended. */
  close(): void {
    for (const letGo of this.#leaving.values()) letGo()
    this.#leaving.clear()
  }

  #limit({ ip, resource, ipv6PrefixBits, secret, ...limits }: CacheLimits): void {
    const rules = new Float64Array(rule.count)
    rules.set([ip.blocks, resource.blocks, ipv6PrefixBits, secret.low, secret.high])
    const places = Float64Array.of(limits.requests, limits.ipTokens, limits.resourceTokens)
    this.#table.limits(ip.words, resource.words, rules, listsOf(limits), limits.meters, places)
  }

  #cellsOf(cells: Int32Array): number {
    let known = this.#cells.get(cells)
    if (known === undefined) {
      known = this.#table.cells(cells)
      this.#cells.set(cells, known)
    }
    return known
  }

  #tallyOf(places: CountPlaces): number {
    let known = this.#tallies.get(places)
    if (known === undefined) {
      known = this.#table.tally(
        places.meters,
        placesIn(places),
        Float64Array.from(places.bounds),
        places.kind,
      )
      this.#tallies.set(places, known)
    }
    return known
  }

  #regionOf({ owner, memory, here, key, onGone, hold }: BodyMemory): number {
    let known = this.#regions.get(owner)
    if (known === undefined) {
      const made = this.#table.region(memory, here.cells, here.ticks.numbers, here.cellBytes, key)
      known = made
      this.#regions.set(owner, made)
      onGone(() => {
        if (!this.#table.close(made)) this.#leaving.set(made, hold())
      })
    }
    return known
  }
}
