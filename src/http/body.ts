import type { HttpResponse } from 'uWebSockets.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { Stalls, Watched } from './stalls.js'

/** The body of one request on its way in. */
export class Inflow implements Watched {
  /** True once the last byte was taken. */
  whole = false
  lastProgress = 0
  readonly #res: HttpResponse
  readonly #stalls: Stalls
  readonly #pieces: Uint8Array[] = []
  #size = 0
  #settle: ((body: Uint8Array | Refusal) => void) | undefined

  constructor(res: HttpResponse, stalls: Stalls) {
    this.#res = res
    this.#stalls = stalls
  }

  /** Collects at most `sizeMaxBytes`. Never rejects; the refusals are those of `Request.body`. */
  read(sizeMaxBytes: number): Promise<Uint8Array | Refusal> {
    return new Promise((resolve) => {
      this.#settle = resolve
      this.#stalls.watch(this)
      this.#res.onData((chunk, last) => this.#take(chunk, last, sizeMaxBytes))
    })
  }

  #take(chunk: ArrayBuffer, last: boolean, sizeMaxBytes: number): void {
    this.whole = last
    if (this.#settle === undefined) return
    this.#stalls.moved(this)
    this.#size += chunk.byteLength
    if (this.#size > sizeMaxBytes) {
      this.#end(refuse('too-large', 'client', `the body is larger than ${sizeMaxBytes} bytes`))
      return
    }
    // The server takes its memory back when this returns.
    this.#pieces.push(new Uint8Array(chunk.slice(0)))
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

  keepAlive(): void {
    // The server's own timer goes on: it wants about 16 KiB/s of a body, and drops who sends slower.
  }

  /** The client has left. */
  abort(): void {
    this.#end(refuse('malformed', 'client', 'the body ended early'))
  }
}
