import { field, hashOfName, lineFields, requestFlag, type Wire } from '../../native/server/wire.js'
import type { HeldMemory } from '../actor/held-memory.js'
import { ownText } from '../format/own-text.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { IncomingBody } from './body.js'
import type { BodyControl, BodySink, Request } from './exchange.js'

/** Names that handlers ask for, with their hashes. The names come from code only, so there are few. */
const hashes = new Map<string, number>()
const hashesMax = 1000

function hashOf(name: string): number {
  let hash = hashes.get(name)
  if (hash === undefined) {
    hash = hashOfName(name)
    if (hashes.size < hashesMax) hashes.set(name, hash)
  }
  return hash
}

/** What a request needs of the server that made it. */
export interface Front {
  readonly wire: Wire
  /** It speaks TLS. */
  readonly isSecure: boolean
  /** Address of the other end of a connection, read once. */
  addressOf(slot: number): string
  /** Memory for bodies that are wanted as a whole. */
  readonly memory: HeldMemory
  clientOf(request: Request): string
}

/** A request as the server parsed it. While the handler runs, header lines are read in the server's memory. */
export class SocketRequest implements Request {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly slot: number
  home: Request['home']
  readonly #front: Front
  readonly #flags: number
  readonly #base: number
  readonly #textEnd: number
  readonly #count: number
  /** The numbers of the lines: in the inbox, or a copy of them. */
  #numbers: Int32Array
  #at: number
  /** The head, once it was copied. */
  #text: string | undefined
  #address: string | undefined
  #length = 0
  #body: IncomingBody | undefined

  /** `at`: where the message starts in the inbox. */
  constructor(front: Front, at: number) {
    const { inbox, bytes } = front.wire
    const base = inbox[at + field.base]!
    const pathEnd = base + inbox[at + field.pathEnd]!
    const queryStart = base + inbox[at + field.queryStart]!
    const queryEnd = base + inbox[at + field.queryEnd]!
    const methodEnd = base + inbox[at + field.methodEnd]!
    this.method = methodOf(bytes, base + inbox[at + field.methodStart]!, methodEnd)
    this.path = bytes.toString('latin1', base + inbox[at + field.pathStart]!, pathEnd)
    this.query = queryStart < queryEnd ? bytes.toString('latin1', queryStart, queryEnd) : ''
    this.slot = inbox[at + 1]!
    this.#front = front
    this.#flags = inbox[at + field.flags]!
    this.#base = base
    this.#textEnd = inbox[at + field.textEnd]!
    this.#count = inbox[at + field.count]!
    this.#numbers = inbox
    this.#at = at + field.lines
    if (this.hasBody) this.#length = inbox[at + field.lengthHigh]! * 2 ** 30 + inbox[at + field.lengthLow]!
  }

  header(name: string): string | undefined {
    const hash = hashOf(name)
    const numbers = this.#numbers
    const end = this.#at + this.#count * lineFields
    let found: string | undefined
    for (let at = this.#at; at < end; at += lineFields) {
      if (numbers[at] !== hash || !this.#isNamed(at, name)) continue
      const value = this.#piece(numbers[at + 3]!, numbers[at + 4]!)
      found = found === undefined ? value : `${found}, ${value}`
    }
    return found
  }

  headersUnder(start: string): readonly (readonly [name: string, value: string])[] {
    const numbers = this.#numbers
    const end = this.#at + this.#count * lineFields
    const found: [string, string][] = []
    for (let at = this.#at; at < end; at += lineFields) {
      if (!this.#beginsWith(at, start)) continue
      const name = this.#piece(numbers[at + 1]!, numbers[at + 2]!)
      found.push([name, this.#piece(numbers[at + 3]!, numbers[at + 4]!)])
    }
    return found
  }

  #isNamed(at: number, name: string): boolean {
    return this.#numbers[at + 2]! - this.#numbers[at + 1]! === name.length && this.#beginsWith(at, name)
  }

  /** Whether the name of a line begins so. */
  #beginsWith(at: number, name: string): boolean {
    const start = this.#numbers[at + 1]!
    if (this.#numbers[at + 2]! - start < name.length) return false
    if (this.#text !== undefined) return this.#text.startsWith(name, start)
    // Compared byte by byte: making a string of a few bytes costs ten times as much.
    const { bytes } = this.#front.wire
    const base = this.#base + start
    for (let index = 0; index < name.length; index += 1) {
      if (bytes[base + index] !== name.charCodeAt(index)) return false
    }
    return true
  }

  #piece(start: number, end: number): string {
    // A value may be kept for long: without the head that it was cut from.
    if (this.#text !== undefined) return ownText(this.#text.slice(start, end))
    return this.#front.wire.bytes.toString('latin1', this.#base + start, this.#base + end)
  }

  get secure(): boolean {
    return this.#front.isSecure
  }

  get remoteAddress(): string {
    this.#address ??= this.#front.addressOf(this.slot)
    return this.#address
  }

  /** Copies everything that may be read later out of the server's memory. */
  detach(): void {
    void this.remoteAddress
    this.#text = this.#front.wire.bytes.toString('latin1', this.#base, this.#base + this.#textEnd)
    this.#numbers = this.#numbers.slice(this.#at, this.#at + this.#count * lineFields)
    this.#at = 0
  }

  /** A body follows the head. */
  get hasBody(): boolean {
    return (this.#flags & requestFlag.body) !== 0
  }

  /** The body comes in chunks, of no length known ahead. */
  get isChunked(): boolean {
    return (this.#flags & requestFlag.chunked) !== 0
  }

  /** HTTP/1.0. */
  get isOld(): boolean {
    return (this.#flags & requestFlag.http10) !== 0
  }

  /** The client wants the connection to end with the answer. */
  get isLast(): boolean {
    return (this.#flags & requestFlag.keep) === 0
  }

  /** Where the body comes from: set by the server before the handler runs, for requests that have one. */
  expect(body: IncomingBody): void {
    this.#body = body
  }

  /** The answer is over: a body that still comes in has no reader. */
  drop(): void {
    this.#body?.abort()
  }

  /** True where a body was announced and has not been read to its end. */
  get unread(): boolean {
    return this.hasBody && this.#body?.whole !== true
  }

  body(sizeMaxBytes: number): Promise<Uint8Array | Refusal> {
    if (!this.hasBody) return Promise.resolve(new Uint8Array(0))
    if (this.#length > sizeMaxBytes) {
      return Promise.resolve(refuse('too-large', 'client', `the body is larger than ${sizeMaxBytes} bytes`))
    }
    if (this.#body === undefined) throw new Error('the body of this request was not expected')
    return this.#body.read({
      memory: this.#front.memory,
      client: () => this.#front.clientOf(this),
      sizeMaxBytes,
      announcedBytes: this.isChunked ? undefined : this.#length,
    })
  }

  stream(sink: BodySink): BodyControl {
    if (!this.hasBody) {
      queueMicrotask(() => sink.over(undefined))
      return noControl
    }
    if (this.#body === undefined) throw new Error('the body of this request was not expected')
    this.#body.stream(sink)
    return this.#body
  }
}

/** The control of a request without a body. */
const noControl: BodyControl = { pause: () => undefined, resume: () => undefined }

/** The usual methods need no new string. */
function methodOf(bytes: Buffer, start: number, end: number): string {
  if (end - start === 3 && bytes[start] === 71 && bytes[start + 1] === 69 && bytes[start + 2] === 84)
    return 'GET'
  return bytes.toString('latin1', start, end)
}
