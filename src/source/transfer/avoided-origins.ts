import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'

/** Time until a server that sent wrong bytes for an id may get a request for that id again. */
const avoidMs = 600_000

/** Ids of which forgeries are remembered. */
const idsMax = 1000

interface Caught {
  readonly origins: Set<string>
  readonly untilMs: number
}

/** Who sent bytes for an id that proved wrong: the next fetch of that id asks somebody else. */
export class AvoidedOrigins {
  readonly #caught = new BoundedMap<Id, Caught>(idsMax)

  constructor(private readonly clock: Clock) {}

  /** Origins that get no request for `id` now; a set of the caller's own. */
  of(id: Id): Set<string> {
    const caught = this.#caught.get(id)
    if (caught === undefined) return new Set()
    if (caught.untilMs > this.clock.monotonic()) return new Set(caught.origins)
    this.#caught.delete(id)
    return new Set()
  }

  add(id: Id, origin: string): void {
    const origins = this.of(id).add(origin)
    this.#caught.set(id, { origins, untilMs: this.clock.monotonic() + avoidMs })
  }
}
