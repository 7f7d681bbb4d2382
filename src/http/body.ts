import type { Wire } from '../../native/server/wire.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { clientPace } from './client-pace.js'
import type { BodyControl, BodySink, Pace } from './exchange.js'
import { type BodyTerms, GatheredBody, noMemory } from './gathered-body.js'
import type { SenderPace } from './sender-pace.js'
import type { Stalls, Watched } from './stalls.js'

/**
 * The body of one request on its way in. A sender that is too slow (`SenderPace`) is refused: it would hold one of the places for
 * requests.
 */
export class IncomingBody implements Watched, BodyControl {
  /** True once the last byte was taken. */
  whole = false
  lastProgress = 0
  readonly #wire: Wire
  readonly #slot: number
  readonly #stalls: Stalls
  readonly #pace: SenderPace
  #startedMs = 0
  #size = 0
  #sink: BodySink | undefined
  #paused = false

  constructor(wire: Wire, slot: number, stalls: Stalls, pace: SenderPace) {
    this.#wire = wire
    this.#slot = slot
    this.#stalls = stalls
    this.#pace = pace
  }

  /** Collects at most `sizeMaxBytes`. Never rejects; the refusals are those of `Request.body`. */
  read(terms: BodyTerms): Promise<Uint8Array | Refusal> {
    return new Promise((resolve) => {
      const body = new GatheredBody(terms, () => this.#end(noMemory))
      this.stream({
        piece: (piece) => {
          const refusal = body.add(piece)
          if (refusal !== undefined) this.#end(refusal)
        },
        over: (refusal) => {
          body.leave()
          resolve(refusal ?? body.bytes())
        },
      })
    })
  }

  /** Hands pieces to `sink` as they come. */
  stream(sink: BodySink): void {
    this.#sink = sink
    this.#stalls.watch(this)
    this.#startedMs = this.lastProgress
    this.#pace.wait()
    this.#wire.read(this.#slot)
  }

  pause(): void {
    if (this.#paused || this.whole || this.#sink === undefined) return
    this.#paused = true
    // While reading is paused the client cannot send, so that it must not be judged as slow.
    this.#stalls.forget(this)
    this.#pace.came(0)
    this.#wire.pause(this.#slot)
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    if (this.#sink === undefined) return
    this.#stalls.watch(this)
    this.#pace.wait()
    this.#wire.read(this.#slot)
  }

  /** `piece` is valid until this returns. */
  take(piece: Uint8Array, last: boolean): void {
    this.whole = last
    const sink = this.#sink
    if (sink === undefined) return
    this.#pace.came(piece.length)
    if (!this.#paused) {
      this.#stalls.moved(this)
      this.#pace.wait()
    }
    this.#size += piece.length
    if (piece.length > 0) sink.piece(piece)
    if (last) this.#end(undefined)
  }

  #end(refusal: Refusal | undefined): void {
    const sink = this.#sink
    this.#sink = undefined
    this.#stalls.forget(this)
    sink?.over(refusal)
  }

  /** Milliseconds since it last came on; undefined where nobody waits for it. */
  quietMs(nowMs: number): number | undefined {
    return this.#sink === undefined || this.#paused ? undefined : nowMs - this.lastProgress
  }

  /** Undefined where nobody waits for it. */
  pace(nowMs: number): Pace | undefined {
    if (this.#sink === undefined || this.#paused) return undefined
    return clientPace(this.#size, nowMs - this.#startedMs)
  }

  stalled(): void {
    this.#end(refuse('late', 'client', 'the body did not arrive in time'))
  }

  fail(): void {
    this.abort()
  }

  keepAlive(): void {
    if (this.#pace.leftMs <= 0) this.stalled()
  }

  /** The client has left. */
  abort(): void {
    this.#end(refuse('malformed', 'client', 'the body ended early'))
  }
}
