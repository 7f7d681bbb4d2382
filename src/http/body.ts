import type { Wire } from '../../native/server/wire.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { Stalls, Watched } from './stalls.js'

/** A body that comes slower for long is not waited for: a thousand of them would keep a thousand flows. */
const bytesPerSecondMin = 1024

/** The body of one request on its way in. */
export class Inflow implements Watched {
  /** True once the last byte was taken. */
  whole = false
  lastProgress = 0
  #startedMs: number | undefined
  readonly #wire: Wire
  readonly #slot: number
  readonly #stalls: Stalls
  readonly #pieces: Uint8Array[] = []
  #sizeMaxBytes = 0
  #size = 0
  #settle: ((body: Uint8Array | Refusal) => void) | undefined

  constructor(wire: Wire, slot: number, stalls: Stalls) {
    this.#wire = wire
    this.#slot = slot
    this.#stalls = stalls
  }

  /** Collects at most `sizeMaxBytes`. Never rejects; the refusals are those of `Request.body`. */
  read(sizeMaxBytes: number): Promise<Uint8Array | Refusal> {
    return new Promise((resolve) => {
      this.#settle = resolve
      this.#sizeMaxBytes = sizeMaxBytes
      this.#stalls.watch(this)
      this.#wire.read(this.#slot)
    })
  }

  /** `piece` is valid until this returns. */
  take(piece: Uint8Array, last: boolean): void {
    this.whole = last
    if (this.#settle === undefined) return
    this.#stalls.moved(this)
    this.#size += piece.length
    if (this.#size > this.#sizeMaxBytes) {
      this.#end(refuse('too-large', 'client', `the body is larger than ${this.#sizeMaxBytes} bytes`))
      return
    }
    this.#pieces.push(Uint8Array.prototype.slice.call(piece))
    if (last) this.#end(Buffer.concat(this.#pieces))
  }

  #end(outcome: Uint8Array | Refusal): void {
    const settle = this.#settle
    this.#settle = undefined
    this.#stalls.forget(this)
    this.#pieces.length = 0
    settle?.(outcome)
  }

  stalled(): void {
    this.#end(refuse('late', 'client', 'the body did not arrive in time'))
  }

  fail(): void {
    this.abort()
  }

  keepAlive(nowMs: number): void {
    this.#startedMs ??= nowMs
    const wanted = ((nowMs - this.#startedMs) / 1000) * bytesPerSecondMin
    if (nowMs - this.#startedMs > this.#stalls.stallMs && this.#size < wanted) this.stalled()
  }

  /** The client has left. */
  abort(): void {
    this.#end(refuse('malformed', 'client', 'the body ended early'))
  }
}
