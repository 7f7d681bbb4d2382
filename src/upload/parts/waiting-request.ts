import type { Refusal } from '../../format/refusal.js'
import type { BodyControl, BodySink, Request } from '../../http/exchange.js'

/** A body that is not read yet: what the server had read already waits here. */
class WaitingBody implements BodySink {
  #control: BodyControl | undefined
  #sink: BodySink | undefined
  #early: Buffer[] = []
  #ended: { readonly refusal: Refusal | undefined } | undefined

  begin(request: Request): void {
    this.#control = request.stream(this)
    this.#control.pause()
  }

  piece(bytes: Uint8Array): void {
    if (this.#sink === undefined) this.#early.push(Buffer.from(bytes))
    else this.#sink.piece(bytes)
  }

  over(refusal: Refusal | undefined): void {
    if (this.#sink === undefined) this.#ended = { refusal }
    else this.#sink.over(refusal)
  }

  /** Gives it to who reads it, a turn later. */
  into(sink: BodySink): BodyControl {
    let isPaused = false
    const flow = this.#control
    const given = (): void => {
      this.#sink = sink
      for (const piece of this.#early.splice(0)) sink.piece(piece)
      if (this.#ended !== undefined) sink.over(this.#ended.refusal)
      else if (!isPaused) flow?.resume()
    }
    queueMicrotask(given)
    return {
      pause: () => {
        isPaused = true
        flow?.pause()
      },
      resume: () => {
        isPaused = false
        // Before `given` nothing may come: pieces have their order.
        if (this.#sink !== undefined) flow?.resume()
      },
    }
  }
}

/** The same request for a handler that has to wait before it knows whether it wants the body. To be called before it waits. */
export function waitingRequest(request: Request): Request {
  const body = new WaitingBody()
  body.begin(request)
  const { method, path, query, remoteAddress, secure, home } = request
  return {
    method,
    path,
    query,
    remoteAddress,
    ...(secure === undefined ? {} : { secure }),
    home,
    header: (name) => request.header(name),
    headersUnder: (start) => request.headersUnder(start),
    body: () => Promise.reject(new Error('a body that waits is read in pieces')),
    stream: (sink) => body.into(sink),
  }
}
