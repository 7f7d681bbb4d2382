import { lookup } from 'node:dns'
import { isIP } from 'node:net'
import type { Answering, OpenQuestion } from '../../../native/client/client.js'
import { PlainClient } from '../../../native/client/client.js'
import type { Clock } from '../../actor/clock.js'
import { wantedLines } from './gateway-headers.js'
import { wholeMaxBytes } from './line-answer.js'

/** After this time a host's addresses are asked for again, beside the questions. */
const locatedMs = 30_000

/** Values of header lines that go out: no control characters, so that none can begin a line of its own. */
const plainValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Of a request line. */
const plainPath = /^[\x21-\x7e]+$/

interface Place {
  readonly origin: number
  readonly host: string
  readonly port: number
  /** What stands in the Host line. */
  readonly authority: string
  /** The address is the name. */
  readonly isFixed: boolean
  locatedMs: number
  isAsked: boolean
  /** Called when the first addresses are there; with an error where there are none. */
  waiting: ((error: Error | undefined) => void)[]
}

export interface PlainQuestion {
  readonly method: 'GET' | 'HEAD'
  /** With its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** Questions over plain HTTP by the client of our own: host names, heads, and what of an answer's lines is read. */
export class PlainLine {
  readonly #client: PlainClient
  readonly #places = new Map<string, Place>()
  /** Those of the last question, and their text. */
  #headers: PlainQuestion['headers'] | undefined
  #lines: string | undefined

  /** Throws where the addon is not there. */
  constructor(
    connectionsMax: number,
    private readonly clock: Clock,
  ) {
    this.#client = new PlainClient({ names: wantedLines, connectionsMax, wholeMaxBytes })
  }

  /** Whether questions to `origin` (a URL's) can go this way. */
  static serves(origin: string): boolean {
    return PlainClient.isThere && origin.startsWith('http://')
  }

  /** Asks; `answering` may hear of an error before this returns only where the question itself is none. */
  ask(origin: string, question: PlainQuestion, answering: Answering): OpenQuestion {
    const place = this.#placeOf(origin)
    const lines = this.#linesOf(question.headers)
    const { method, path } = question
    if (lines === undefined || !plainPath.test(path)) {
      answering.onError(new Error('a header line has characters that it must not have'))
      return nothing
    }
    const head = `${method} ${path} HTTP/1.1\r\nhost: ${place.authority}\r\n${lines}\r\n`
    const send = (): OpenQuestion => this.#client.ask(place.origin, head, method === 'HEAD', answering)
    const isLocated = this.#locate(place)
    return isLocated ? send() : new Waiting(place, send, answering)
  }

  destroy(): void {
    this.#client.destroy()
  }

  /** Undefined: a value has characters that it must not have. Most questions have the very lines of the one before. */
  #linesOf(headers: PlainQuestion['headers']): string | undefined {
    if (headers !== this.#headers) {
      this.#lines = linesOf(headers)
      this.#headers = headers
    }
    return this.#lines
  }

  #placeOf(origin: string): Place {
    const known = this.#places.get(origin)
    if (known !== undefined) return known
    const { hostname, port, host } = new URL(origin)
    const name = hostname.replace(/^\[(.*)\]$/, '$1')
    const place: Place = {
      origin: this.#client.origin(),
      host: name,
      port: port === '' ? 80 : Number(port),
      authority: host,
      isFixed: isIP(name) !== 0,
      locatedMs: Number.NEGATIVE_INFINITY,
      isAsked: false,
      waiting: [],
    }
    if (place.isFixed) this.#client.locate(place.origin, [name], place.port)
    this.#places.set(origin, place)
    return place
  }

  /** True: it has addresses. They are looked up anew where they are old. */
  #locate(place: Place): boolean {
    if (place.isFixed) return true
    const nowMs = this.clock.monotonic()
    if (nowMs - place.locatedMs > locatedMs && !place.isAsked) this.#lookUp(place)
    return place.locatedMs > Number.NEGATIVE_INFINITY
  }

  #lookUp(place: Place): void {
    place.isAsked = true
    lookup(place.host, { all: true }, (error, found) => {
      place.isAsked = false
      if (error === null && found.length > 0) {
        // Some networks have addresses of version 6 that lead nowhere, and such an attempt is long.
        const ips = found.toSorted((one, other) => one.family - other.family).map(({ address }) => address)
        this.#client.locate(place.origin, ips, place.port)
        place.locatedMs = this.clock.monotonic()
      }
      const { waiting } = place
      place.waiting = []
      const failed = place.locatedMs === Number.NEGATIVE_INFINITY
      for (const go of waiting) go(failed ? (error ?? new Error('its host has no address')) : undefined)
    })
  }
}

const nothing: OpenQuestion = { pause: () => undefined, resume: () => undefined, drop: () => undefined }

/** A question that waits for addresses. */
class Waiting implements OpenQuestion {
  #asked: OpenQuestion | undefined
  #isOver = false

  constructor(place: Place, send: () => OpenQuestion, answering: Answering) {
    place.waiting.push((error) => {
      if (this.#isOver) return
      if (error === undefined) this.#asked = send()
      else answering.onError(error)
    })
  }

  pause(): void {
    this.#asked?.pause()
  }

  resume(): void {
    this.#asked?.resume()
  }

  drop(): void {
    this.#isOver = true
    this.#asked?.drop()
  }
}

function linesOf(headers: PlainQuestion['headers']): string | undefined {
  let lines = ''
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!plainValue.test(value)) return undefined
    lines += `${name}: ${value}\r\n`
  }
  return lines
}
