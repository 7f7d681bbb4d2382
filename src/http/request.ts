import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { Inflow } from './body.js'
import { type Framing, framingOf, type Lines, targetFault } from './door.js'
import type { Request } from './exchange.js'

let collected: string[] = []
const collect = (name: string, value: string): void => {
  collected.push(name, value)
}

/** The header lines of a request in one pass: cheaper than asking for a handful of names, and the door needs them all. */
function linesOf(req: HttpRequest): Lines {
  req.forEach(collect)
  const lines = collected
  collected = []
  return lines
}

/** IPv4 addresses that came in over an IPv6 socket, in dotted form. */
function addressText(bytes: ArrayBuffer): string {
  const text = Buffer.from(bytes).toString('latin1')
  const mapped = /^0000:0000:0000:0000:0000:ffff:([0-9a-f]{2})([0-9a-f]{2}):([0-9a-f]{2})([0-9a-f]{2})$/.exec(
    text,
  )
  if (mapped === null) return text
  return mapped
    .slice(1)
    .map((byte) => Number.parseInt(byte, 16))
    .join('.')
}

/** A request as the server hands it over. */
export class SocketRequest implements Request {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly framing: Framing
  /** What is malformed about it; such a request must not reach a route. */
  readonly fault: string | undefined
  readonly #lines: Lines
  #res: HttpResponse | undefined
  #inflow: Inflow | undefined
  #address: string | undefined

  constructor(res: HttpResponse, req: HttpRequest) {
    this.method = req.getCaseSensitiveMethod()
    this.path = req.getUrl()
    // The server's types promise text, but it gives undefined where there is no question mark.
    this.query = req.getQuery() ?? ''
    this.#lines = linesOf(req)
    this.framing = framingOf(this.#lines)
    this.fault = this.framing.fault ?? targetFault(this.method, this.path, this.query, this.framing)
    this.#res = res
  }

  header(name: string): string | undefined {
    const lines = this.#lines
    let found: string | undefined
    for (let at = 0; at < lines.length; at += 2) {
      if (lines[at] === name) found = found === undefined ? lines[at + 1] : `${found}, ${lines[at + 1]}`
    }
    return found
  }

  get remoteAddress(): string {
    if (this.#address === undefined) {
      this.#address = this.#res === undefined ? '' : addressText(this.#res.getRemoteAddressAsText())
    }
    return this.#address
  }

  /** Lets go of the server's response object; whatever must be known of the socket later is asked now. */
  detach(keepAddress: boolean): void {
    if (keepAddress) void this.remoteAddress
    this.#res = undefined
  }

  /** Where a body comes from: set by the server before the handler runs, for requests that have one. */
  expect(inflow: Inflow): void {
    this.#inflow = inflow
  }

  /** The answer is over: a body that still comes in has no reader. */
  drop(): void {
    this.#inflow?.abort()
  }

  /** True where a body was announced and has not been read to its end. */
  get unread(): boolean {
    return this.framing.body && this.#inflow?.whole !== true
  }

  body(sizeMaxBytes: number): Promise<Uint8Array | Refusal> {
    if (!this.framing.body) return Promise.resolve(new Uint8Array(0))
    if (this.framing.length > sizeMaxBytes) {
      return Promise.resolve(refuse('too-large', 'client', `the body is larger than ${sizeMaxBytes} bytes`))
    }
    if (this.#inflow === undefined) throw new Error('the body of this request was not expected')
    return this.#inflow.read(sizeMaxBytes)
  }
}
