import type { Grant } from '../admission/admission-port.js'
import type { KeptHead } from '../http/exchange.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { StoredContent } from '../store/stored-content.js'
import type { DeliveryParts } from './delivery-parts.js'
import type { Entry } from './entry.js'
import { isolationLines } from './isolation.js'
import type { ItemWindow } from './item-window.js'
import type { Planned } from './plan.js'
import { enter } from './steps.js'

/** Content in the store. `sound`: it was checked. */
interface Stored {
  readonly sound: boolean
  readonly content: StoredContent | ItemWindow
}

/** Heads of answers from the store, and from the catalog alone: each entry keeps those that were written for it. */
export class StoredHeads {
  readonly #noHops: string
  /** Keyed by the lines of an origin: one text for each, so that heads are kept by identity. */
  readonly #tails = new Map<string, string>()

  constructor(private readonly parts: Pick<DeliveryParts, 'clock' | 'hopsName' | 'cacheFiller' | 'writer'>) {
    this.#noHops = `\r\n${parts.hopsName}: 0`
  }

  /** Step `head`. Offers the answer to the response cache. `stored` absent: the answer is from the catalog alone. */
  headOf(exchange: Exchange, entry: Entry, planned: Planned, grant: Grant, stored?: Stored): KeptHead {
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

  #tailOf(own: string): string {
    let tail = this.#tails.get(own)
    if (tail === undefined) {
      tail = own + this.#noHops
      this.#tails.set(own, tail)
    }
    return tail
  }
}
