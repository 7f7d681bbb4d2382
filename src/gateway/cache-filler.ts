import type { Log } from '../actor/log.js'
import type { Meter, Meters } from '../actor/meter.js'
import type { SampleRings } from '../actor/sample-rings.js'
import type { Tip } from '../actor/shared.js'
import type { Admission } from '../admission/admission-port.js'
import type { Catalog } from '../catalog/catalog-messages.js'
import type { AnswerPrice, CountPlaces, ResponseCacheOptions } from '../http/response-cache.js'
import type { Bounded } from '../names/name-marks.js'
import { type Exchange, type Family, families } from '../serving/request-exchange.js'
import type { StoredContent } from '../store/stored-content.js'
import type { Entry } from './entry.js'
import type { TimedHead } from './entry-heads.js'
import type { Guard } from './guard.js'
import { ItemWindow } from './item-window.js'
import { plainLines } from './plain-lines.js'
import type { Planned } from './plan.js'
import { RecentKeys } from './recent-keys.js'

const int32Min = -(2 ** 31)
const int32Max = 2 ** 31 - 1

/** Larger bodies are sent piece by piece by `pump.ts`, which looks at the block list before each piece. */
const bodyMaxBytes = 1024 * 1024

/**
 * Whether the number of paths to this content is bounded: `/{id}`, `/raw/{id}`, the root of a name, a path of a manifest. Clients
 * can invent any number of other paths, which would evict useful answers from the response cache.
 */
function isOwnPath({ family, path, naming, fallback }: Exchange): boolean {
  if (family === 'manifest') {
    // Of the paths without a name `/{id}/` alone: frames are redirected where a browser is about to show them.
    const isBelowId = naming === undefined && path[44] === '/'
    return !fallback && (isBelowId || naming !== undefined) && isUsualSpelling(path)
  }
  if (family === 'raw') return path.length === 48
  return family === 'data' && (naming === undefined ? path.length === 44 : path === '/')
}

/** Paths below a manifest are decoded, and slashes at their end count for nothing: each has any number of spellings. */
function isUsualSpelling(path: string): boolean {
  return !path.endsWith('//') && (!path.includes('%') || encodeURI(decodeURIComponent(path)) === path)
}

/** An answer, and what it was made of. */
type Offered = readonly [
  exchange: Exchange,
  entry: Entry,
  content: StoredContent | ItemWindow,
  planned: Planned,
  head: TimedHead,
]

export interface CacheFillerParts {
  readonly catalog: Pick<Catalog, 'generationCell'>
  readonly tip: Tip
  readonly forkDepth: number
  readonly guard: Guard | undefined
  readonly meters: Meters
  readonly log: Log
  readonly admission: Pick<Admission, 'price' | 'namesCondition'> | undefined
}

/** The response cache of a server. None where each request has a line in the log: then each takes the steps. */
export function responseCacheOptions(
  maxBytes: number,
  log: Log,
  resources: SampleRings,
  more: Pick<ResponseCacheOptions, 'limits' | 'signing' | 'group'> = {},
): { readonly responseCache?: ResponseCacheOptions } {
  if (maxBytes === 0 || log.isLevelEnabled('debug')) return {}
  const onSample: ResponseCacheOptions['onSample'] = (ms, bytes, count, path) =>
    resources.put(ms, path, bytes, count)
  return { responseCache: { maxBytes, plain: plainLines, onSample, ...more } }
}

/**
 * Fills the response cache of the server with answers to plain requests (plain-lines.ts). Each answer comes with the numbers in
 * shared memory that it depends on: name, manifest, generation of the id's shard, block list, segment or file. Where the finality
 * of the block matters, the tip is one of them, and the seconds bound the use of the signature. If a number has changed, the
 * server passes the request to the steps.
 */
export class CacheFiller {
  readonly #counts = new Map<string, CountPlaces>()
  readonly #recent = new RecentKeys()
  readonly #failures: Meter
  #isFailureLogged = false

  constructor(private readonly parts: CacheFillerParts) {
    this.#failures = parts.meters.of('answers_not_offered_total')
  }

  /** Makes the answer to this exchange depend on this entry, too. */
  dependOn(exchange: Exchange, entry: Entry): void {
    if (exchange.cacheConditions === undefined || exchange.reply.responseCache === undefined) return
    const conditions = this.#entryConditions(entry)
    exchange.cacheConditions = conditions && [...exchange.cacheConditions, ...conditions]
  }

  /**
   * `head`: that of this answer, which is about to be sent. Never throws: a bug in here is logged once and counted. The
   * client does not notice it, because the answer was decided before.
   */
  offer(...about: Offered): void {
    try {
      this.#offer(...about)
    } catch (error) {
      this.#failures.add(1)
      if (this.#isFailureLogged) return
      this.#isFailureLogged = true
      this.parts.log.error({ err: error }, 'a bug: an answer could not be offered to the response cache')
    }
  }

  #offer(...[exchange, entry, content, planned, head]: Offered): void {
    const { responseCache } = exchange.reply
    if (responseCache === undefined || exchange.cacheConditions === undefined) return
    const { method, path, family, request, naming } = exchange
    const { variant } = planned
    if ((method !== 'GET' && method !== 'HEAD') || variant === 'parts') return
    if (method === 'HEAD' && variant === 'part') return
    // Answers of their own: behind other gateways, to any other path of the same content.
    if (exchange.hops !== 0 || request.query !== '' || !isOwnPath(exchange)) return
    const { size } = entry.attributes
    if (size === 0 || (method === 'GET' && variant === 'whole' && size > bodyMaxBytes)) return
    const host = request.header('host') ?? ''
    if (!responseCache.hasRoom && !this.#recent.isSecond(method, host, path, variant)) return
    const borrowed = content.lend?.(entry.segmentWithdrawals)
    const conditions = this.#contentConditions(entry, content)
    const price = this.#priceOf(exchange)
    if (borrowed === undefined || conditions === undefined || price === undefined) return
    responseCache.put({
      variant,
      method,
      host,
      path,
      isStrict: family === 'raw',
      tag: entry.tagFor(naming) ?? '',
      shown: naming?.name ?? '',
      ...head.split,
      fromSeconds: head.fromSeconds,
      untilSeconds: head.untilSeconds,
      sizeBytes: size,
      body: borrowed,
      offset: borrowed.offset,
      conditions: [
        ...exchange.cacheConditions,
        ...conditions,
        ...borrowed.conditions.map(([cell, value]) => [cell, value, value] as const),
        ...this.#priceConditions(exchange),
      ],
      requested: borrowed.requested,
      tally: this.#countsOf(family, variant === 'unchanged' ? '3xx' : '2xx', naming?.name !== undefined),
      price,
    })
  }

  #priceOf({ request, naming }: Exchange): AnswerPrice | undefined {
    const { admission } = this.parts
    return admission === undefined ? 'none' : admission.price?.(request, naming?.name)
  }

  /** The operator may change which names are limited. */
  #priceConditions({ naming }: Exchange): Bounded[] {
    const condition = naming?.name === undefined ? undefined : this.parts.admission?.namesCondition
    return condition === undefined ? [] : [condition]
  }

  /** Numbers that what is known of the entry and its block depends on. Undefined: not all of it can be watched. */
  #contentConditions(entry: Entry, content: StoredContent | ItemWindow): Bounded[] | undefined {
    const { tip, forkDepth } = this.parts
    const { height } = entry.attributes
    const conditions = this.#entryConditions(entry)
    if (conditions === undefined) return undefined
    if (content instanceof ItemWindow) {
      const root = this.#generation(content.root)
      if (root === undefined) return undefined
      conditions.push(root)
    }
    if (height !== undefined) {
      // The first value of the cell, which holds the height and one, with which the block is final.
      const final = height + forkDepth + 1
      if (final > int32Max) return undefined
      conditions.push(entry.stable ? [tip.cell, final, int32Max] : [tip.cell, int32Min, final - 1])
    }
    return conditions
  }

  /** While these conditions hold, the record of the entry is the same, and it is not blocked. */
  #entryConditions(entry: Entry): Bounded[] | undefined {
    const { guard } = this.parts
    const generation = this.#generation(entry)
    if (generation === undefined) return undefined
    if (guard === undefined) return [generation]
    const version = guard.versionCell
    if (version === undefined || Number.isNaN(entry.clearAt)) return undefined
    return [generation, [version, entry.clearAt, entry.clearAt]]
  }

  #generation({ attributes, generation }: Entry): Bounded | undefined {
    const cell = this.parts.catalog.generationCell?.(attributes.id)
    return cell && [cell, generation, generation]
  }

  #countsOf(route: Family, status: '2xx' | '3xx', isNamed: boolean): CountPlaces {
    const key = `${route} ${status} ${isNamed}`
    let known = this.#counts.get(key)
    if (known === undefined) {
      known = this.#placesOf(route, status, isNamed)
      this.#counts.set(key, known)
    }
    return known
  }

  #placesOf(route: Family, status: string, isNamed: boolean): CountPlaces {
    const { meters } = this.parts
    const at = (name: string, labels: Record<string, string> = {}): number => meters.placeOf(name, labels).at
    const seconds = meters.placeOf('http_request_duration_seconds', { route })
    return {
      meters: seconds.cells,
      kind: 1 + 4 * families.indexOf(route) + (status === '2xx' ? 0 : 2) + (isNamed ? 1 : 0),
      whole: at('http_requests_total', { route, status }),
      aborted: at('http_requests_total', { route, status: 'aborted' }),
      left: at('client_disconnects_total'),
      stalled: at('client_stalls_total'),
      broken: at('get_data_stream_errors_total'),
      bytes: at('get_data_stream_bytes_total'),
      hits: at('contiguous_data_cache_hit_total'),
      cached: at('answers_repeated_total'),
      ...(isNamed ? { names: at('arns_cache_hit_total') } : {}),
      buckets: seconds.at,
      bounds: seconds.bounds,
    }
  }
}
