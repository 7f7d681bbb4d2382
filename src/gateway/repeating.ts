import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { SampleRings } from '../actor/sample-rings.js'
import type { Cell, Tip } from '../actor/shared.js'
import type { Admission } from '../admission/protocol.js'
import type { Catalog } from '../catalog/protocol.js'
import type { AnswerPrice, CountPlaces, RepeatLimits, RepeatOptions } from '../http/repeater.js'
import type { StoredContent } from '../store/stored-content.js'
import type { Entry, TimedFrame } from './entry.js'
import type { Flow } from './flow.js'
import type { Guard } from './guard.js'
import { ItemWindow } from './item-window.js'
import { plainLines } from './plain-lines.js'
import type { Planned } from './send.js'

const int32Min = -(2 ** 31)
const int32Max = 2 ** 31 - 1

/** Larger bodies are sent piece by piece by `pump.ts`: what the steps before them cost does not matter there. */
const bodyMaxBytes = 256 * 1024

/** `/{id}` and `/raw/{id}`. */
const pathLengths: Readonly<Record<string, number>> = { data: 44, raw: 48 }

export interface RepeatingParts {
  readonly catalog: Pick<Catalog, 'generationCell'>
  readonly tip: Tip
  readonly forkDepth: number
  readonly guard: Guard | undefined
  readonly meters: Meters
  readonly admission: Pick<Admission, 'price'> | undefined
}

/** For the server; nothing where it is to repeat nothing: with a line in the log for each request, each takes the steps. */
export function repeatOptions(
  maxBytes: number,
  log: Log,
  resources: SampleRings,
  limits?: RepeatLimits,
): { readonly repeats?: RepeatOptions } {
  if (maxBytes === 0 || log.isLevelEnabled('debug')) return {}
  const onSample: RepeatOptions['onSample'] = (ms, bytes, count, path) =>
    resources.put(ms, path, bytes, count)
  return { repeats: { maxBytes, plain: plainLines, onSample, limits } }
}

/**
 * Hands answers to the server that every plain request (plain-lines.ts) for the same would get, together with all that they
 * were decided by: the generation of the id's shard, the tip where it says whether the block is final, the version of the
 * block list, the segment or file that the payload lies in, and the seconds in which the signature may be sent. The decisions
 * stay here: where a number has changed the server asks again.
 */
export class Repeating {
  readonly #counts = new Map<string, CountPlaces>()

  constructor(private readonly parts: RepeatingParts) {}

  /** `frame`: the head of this answer, which is about to be sent. */
  offer(
    flow: Flow,
    entry: Entry,
    content: StoredContent | ItemWindow,
    planned: Planned,
    frame: TimedFrame,
  ): void {
    const { repeater } = flow.reply
    if (repeater === undefined || content instanceof ItemWindow) return
    if (!entry.isRepeated && !repeater.hasRoom) return
    const { method, path, family, request } = flow
    const { variant } = planned
    if ((method !== 'GET' && method !== 'HEAD') || variant === 'parts') return
    if (method === 'HEAD' && variant === 'part') return
    // Answers of their own: through a name or a manifest, behind other gateways, to other paths of the same content.
    if (flow.naming !== undefined || flow.fallback || flow.hops !== 0 || request.query !== '') return
    if (path.length !== pathLengths[family]) return
    const { size } = entry.attributes
    if (size === 0 || (method === 'GET' && variant === 'whole' && size > bodyMaxBytes)) return
    const lent = content.lend?.(entry.placeWithdrawals)
    const basis = this.#basisOf(entry)
    const price = this.#priceOf(flow)
    if (lent === undefined || basis === undefined || price === undefined) return
    repeater.offer({
      variant,
      method,
      host: request.header('host') ?? '',
      path,
      isStrict: family === 'raw',
      tag: entry.entityTag ?? '',
      ...frame.frame,
      fromSeconds: frame.fromSeconds,
      // In the last part of its time JavaScript is asked once, to have the next signature made.
      untilSeconds: Math.floor(Math.min(frame.untilSeconds, frame.renewSeconds)),
      sizeBytes: size,
      body: lent,
      offset: lent.offset,
      conditions: [...basis, ...lent.conditions.map(([cell, value]) => [cell, value, value] as const)],
      asked: lent.asked,
      tally: this.#countsOf(family, variant === 'unchanged' ? '3xx' : '2xx'),
      price,
    })
  }

  #priceOf({ request, naming }: Flow): AnswerPrice | undefined {
    const { admission } = this.parts
    return admission === undefined ? 'none' : admission.price?.(request, naming?.name)
  }

  /** What is known of the entry, with the values under which it was read. Undefined: not all of it can be watched. */
  #basisOf(entry: Entry): (readonly [cell: Cell, least: number, most: number])[] | undefined {
    const { catalog, tip, forkDepth, guard } = this.parts
    const { id, height } = entry.attributes
    const generation = catalog.generationCell?.(id)
    if (generation === undefined) return undefined
    const basis: [Cell, number, number][] = [[generation, entry.generation, entry.generation]]
    if (height !== undefined) {
      // The first value of the cell, which holds the height and one, with which the block is final.
      const final = height + forkDepth + 1
      if (final > int32Max) return undefined
      basis.push(entry.stable ? [tip.cell, final, int32Max] : [tip.cell, int32Min, final - 1])
    }
    if (guard !== undefined) {
      const version = guard.versionCell
      if (version === undefined || Number.isNaN(entry.clearAt)) return undefined
      basis.push([version, entry.clearAt, entry.clearAt])
    }
    return basis
  }

  #countsOf(route: string, status: '2xx' | '3xx'): CountPlaces {
    const key = `${route} ${status}`
    let known = this.#counts.get(key)
    if (known === undefined) {
      known = this.#placesOf(route, status)
      this.#counts.set(key, known)
    }
    return known
  }

  #placesOf(route: string, status: string): CountPlaces {
    const { meters } = this.parts
    const at = (name: string, labels: Record<string, string> = {}): number => meters.placeOf(name, labels).at
    const seconds = meters.placeOf('http_request_duration_seconds', { route })
    return {
      meters: seconds.cells,
      whole: at('http_requests_total', { route, status }),
      aborted: at('http_requests_total', { route, status: 'aborted' }),
      left: at('client_disconnects_total'),
      stalled: at('client_stalls_total'),
      broken: at('get_data_stream_errors_total'),
      bytes: at('get_data_stream_bytes_total'),
      hits: at('contiguous_data_cache_hit_total'),
      repeated: at('answers_repeated_total'),
      buckets: seconds.at,
      bounds: seconds.bounds,
    }
  }
}
