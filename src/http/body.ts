import type { Wire } from '../../native/server/wire.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { BodyFlow, BodySink } from './exchange.js'
import type { Stalls, Watched } from './stalls.js'

/** Slower bodies are refused after the stall time: each slow sender would hold one of the limited flows. */
const bytesPerSecondMin = 1024

/** The body of one request on its way in. */
export class Inflow implements Watched, BodyFlow {
  /** True once the last byte was taken. */
  whole = false
  lastProgress = 0
  #startedMs: number | undefined
  readonly #wire: Wire
  readonly #slot: number
  readonly #stalls: Stalls
  #size = 0
  #sink: BodySink | undefined
  #paused = false
  /** Milliseconds in which reading was paused by this program. They do not count as slowness of the sender. */
  #pausedMs = 0

  constructor(wire: Wire, slot: number, stalls: Stalls) {
    this.#wire = wire
    this.#slot = slot
    this.#stalls = stalls
  }

  /** Collects at most `sizeMaxBytes`. Never rejects; the refusals are those of `Request.body`. */
  read(sizeMaxBytes: number): Promise<Uint8Array | Refusal> {
    return new Promise((resolve) => {
      const pieces: Uint8Array[] = []
      this.stream({
        piece: (piece) => {
          if (this.#size > sizeMaxBytes) {
            this.#end(refuse('too-large', 'client', `the body is larger than ${sizeMaxBytes} bytes`))
          } else pieces.push(Uint8Array.prototype.slice.call(piece))
        },
        over: (refusal) => resolve(refusal ?? Buffer.concat(pieces)),
      })
    })
  }

  /** Hands pieces to `sink` as they come. */
  stream(sink: BodySink): void {
    this.#sink = sink
    this.#stalls.watch(this)
    this.#wire.read(this.#slot)
  }

  pause(): void {
    if (this.#paused || this.whole || this.#sink === undefined) return
    this.#paused = true
    // While reading is paused the client cannot send, so that it must not be judged as stalled.
    this.#stalls.forget(this)
    this.#wire.pause(this.#slot)
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    if (this.#sink === undefined) return
    const before = this.lastProgress
    this.#stalls.watch(this)
    this.#pausedMs += this.lastProgress - before
    this.#wire.read(this.#slot)
  }

  /** `piece` is valid until this returns. */
  take(piece: Uint8Array, last: boolean): void {
    this.whole = last
    const sink = this.#sink
    if (sink === undefined) return
    if (!this.#paused) this.#stalls.moved(this)
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

  stalled(): void {
    this.#end(refuse('late', 'client', 'the body did not arrive in time'))
  }

  fail(): void {
    this.abort()
  }

  keepAlive(nowMs: number): void {
    this.#startedMs ??= nowMs
    const spentMs = nowMs - this.#startedMs - this.#pausedMs
    if (spentMs > this.#stalls.stallMs && this.#size < (spentMs / 1000) * bytesPerSecondMin) this.stalled()
  }

  /** The client has left. */
  abort(): void {
    this.#end(refuse('malformed', 'client', 'the body ended early'))
  }
}
