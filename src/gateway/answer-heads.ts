import type { Grant } from '../admission/admission-port.js'
import type { Head, KeptHead } from '../http/exchange.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'
import type { StoredContent } from '../store/stored-content.js'
import type { DeliveryParts } from './delivery-parts.js'
import { type Entry, isStable } from './entry.js'
import { type Facts, typeOf } from './head-writer.js'
import { isolationLines } from './isolation.js'
import type { ItemWindow } from './item-window.js'
import type { Planned } from './plan.js'
import { enter } from './steps.js'

/** Content in the store. `sound`: it was checked. */
interface Stored {
  readonly sound: boolean
  readonly content: StoredContent | ItemWindow
}

/** What is known of content that a source opened. */
export interface KnownOpened extends Pick<Facts, 'attributes' | 'digest' | 'hashed'> {
  readonly boundary: () => string
}

/**
 * Step `head`: the head of each answer with content. What is in the store, or known to the catalog alone, has an entry. It keeps
 * the heads that were written for it (`EntryHeads`). What a source opened has none, so its head is written for one answer.
 */
export class AnswerHeads {
  readonly #noHops: string
  /** Keyed by the lines of an origin: one text for each, so that heads are kept by identity. */
  readonly #tails = new Map<string, string>()

  constructor(
    private readonly parts: Pick<
      DeliveryParts,
      'clock' | 'hopsName' | 'cacheFiller' | 'writer' | 'tip' | 'options'
    >,
  ) {
    this.#noHops = `\r\n${parts.hopsName}: 0`
  }

  /** Offers the answer to the response cache, too. `stored` absent: the answer is from the catalog alone. */
  ofEntry(exchange: Exchange, entry: Entry, planned: Planned, grant: Grant, stored?: Stored): KeptHead {
    enter(exchange, 'head')
    const { variant, status, lines } = planned
    const seconds = Math.floor(this.parts.clock.now() / 1000)
    const own = isolationLines(exchange, entry.contentType)
    const tail = this.#tailOf(own)
    const { fallback, naming, method, path } = exchange
    const sound = stored?.sound === true
    const kind = { variant, cached: stored !== undefined, sound, fallback, naming, tail }
    const timed = entry.heads.headFor(kind, method, path, seconds, this.parts.writer)
    if (stored?.sound === true && grant.lines === '')
      this.parts.cacheFiller.offer(exchange, entry, stored.content, planned, timed)
    return { status, split: timed.split, id: exchange.requestId, lines: lines + grant.lines }
  }

  /** The head of content that a source opened just now. */
  ofOpened(
    exchange: Exchange,
    { trusted, hops = 0 }: OpenedContent,
    planned: Planned,
    grant: Grant,
    { attributes, digest, hashed, boundary }: KnownOpened,
  ): Head {
    enter(exchange, 'head')
    const { writer, tip, options, clock, hopsName } = this.parts
    const { naming, method, path, fallback } = exchange
    const stable = isStable(attributes.height, tip, options.forkDepth)
    // Written out, in the order of an entry's: objects of one shape are what V8 reads fastest.
    const facts: Facts = {
      attributes,
      cached: false,
      verified: false,
      trusted,
      stable,
      digest,
      hashed,
      fallback,
      naming,
    }
    const { variant, status } = planned
    const prepared = writer.prepare(facts, variant, boundary)
    const seconds = Math.floor(clock.now() / 1000)
    const block = writer.signed(prepared, { status, method, path }, seconds)
    const own = isolationLines(exchange, typeOf(attributes))
    const lines = `${planned.lines}${own}\r\n${hopsName}: ${hops}${grant.lines}`
    return { status, block: `${exchange.lines}\r\n${block}${lines}` }
  }

  #tailOf(own: string): string {
    let tail = this.#tails.get(own)
    if (tail === undefined) {
      tail = own + this.#noHops
      this.#tails.set(own, tail)
    }
    return tail
  }
}
