import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Expected, Part, Wanted } from './expected.js'

/** One request as it is sent, and what it must get. */
export interface Sent {
  readonly text: string
  readonly isHead: boolean
  /** The client's own name of the request. */
  readonly requestId: string | undefined
  readonly closes: boolean
  readonly expected: Expected
}

interface Answer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** The connection ended, or was ended, before an answer was whole. */
export class Ended extends Error {}

const answerMs = 60_000

/** A connection whose answers are read one after another, strictly. */
export class Pipeline {
  readonly socket: Socket
  received = 0
  #pieces: Buffer[] = []
  #bytes = 0
  #ended = false
  #wake: () => void = () => undefined

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('data', (piece: Buffer) => {
      this.#pieces.push(piece)
      this.#bytes += piece.length
      this.received += piece.length
      this.#wake()
    })
    const end = (): void => {
      this.#ended = true
      this.#wake()
    }
    this.socket.on('end', end).on('error', end).on('close', end)
  }

  async open(): Promise<void> {
    if (this.socket.connecting) await Promise.race([once(this.socket, 'connect'), once(this.socket, 'close')])
  }

  /** Bytes that nobody asked for. */
  get surplus(): number {
    return this.#bytes
  }

  async closed(): Promise<boolean> {
    while (!this.#ended) await this.#more()
    return true
  }

  async #more(): Promise<void> {
    if (this.#ended) throw new Ended()
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve, reject) => {
      this.#wake = resolve
      timer = setTimeout(() => reject(new Error('no answer came')), answerMs)
    }).finally(() => clearTimeout(timer))
  }

  /** The bytes up to the end of a head, kept; and where they end. */
  async #head(): Promise<string> {
    for (;;) {
      const all = this.#joined()
      const end = all.indexOf('\r\n\r\n')
      if (end >= 0) return this.#take(end + 4).toString('latin1')
      if (all.length > 65_536) throw new Error('a head without an end')
      await this.#more()
    }
  }

  #joined(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)]
    return this.#pieces[0] as Buffer
  }

  #take(count: number): Buffer {
    const all = this.#joined()
    this.#pieces = [all.subarray(count)]
    this.#bytes -= count
    return all.subarray(0, count)
  }

  async answer(isHead: boolean): Promise<Answer> {
    const head = await this.#head()
    const [first = '', ...lines] = head.slice(0, -4).split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) [ -~]+$/.exec(first)?.[1] ?? Number.NaN)
    if (Number.isNaN(status)) throw new Error(`no status line: ${JSON.stringify(first.slice(0, 200))}`)
    const headers = new Map<string, string>()
    for (const line of lines) {
      const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~\w-]+): ?(.*)$/.exec(line) ?? []
      if (name === '') throw new Error(`no header line: ${JSON.stringify(line.slice(0, 200))}`)
      const lower = name.toLowerCase()
      if (lower === 'content-length' && headers.has(lower)) throw new Error('two lengths')
      headers.set(lower, headers.has(lower) ? `${headers.get(lower)}, ${value}` : value)
    }
    const isBodiless = isHead || status === 304 || status === 204
    const stated = headers.get('content-length')
    if (!isBodiless && !/^\d+$/.test(stated ?? ''))
      throw new Error(`an answer of no length: ${head.slice(0, 500)}`)
    const length = isBodiless ? 0 : Number(stated)
    while (this.#bytes < length) await this.#more()
    return { status, headers, body: Buffer.from(this.#take(length)) }
  }
}

/** In words what is wrong with an answer; undefined where nothing is. */
export function faultOf({ expected, requestId, closes }: Sent, answer: Answer): string | undefined {
  const { status, headers, body } = answer
  if (status !== expected.status) return `status ${status} instead of ${expected.status}`
  for (const [name, wanted] of Object.entries(expected.headers)) {
    const value = headers.get(name)
    if (!isWanted(value, wanted)) return `${name}: ${value} instead of ${wanted}`
  }
  const id = headers.get('x-request-id') ?? ''
  if (requestId === undefined ? !/^[\w-]{22}$/.test(id) : id !== requestId)
    return `X-Request-Id: ${id} instead of ${requestId}`
  if (closes !== (headers.get('connection') === 'close')) return `Connection: ${headers.get('connection')}`
  const dated = Date.parse(headers.get('date') ?? '')
  if (!(Math.abs(Date.now() - dated) < 60_000)) return `Date: ${headers.get('date')}`
  const { bodiless, parts } = expected
  const length = headers.get('content-length')
  if (bodiless !== undefined) {
    if (bodiless.length !== undefined && length !== String(bodiless.length))
      return `Content-Length: ${length} instead of ${bodiless.length}`
    return undefined
  }
  const { start } = expected
  if (start !== undefined && !body.subarray(0, start.length).equals(start))
    return 'a body that starts otherwise'
  if (parts !== undefined) return faultOfParts(parts, headers.get('content-type') ?? '', body)
  if (expected.body === undefined || body.equals(expected.body)) return undefined
  const at = body.findIndex((byte, index) => byte !== expected.body?.[index])
  const got = `${body.length} bytes, another one from ${at} on: ${JSON.stringify(body.toString('latin1', 0, 60))}`
  return `a body of ${got} instead of ${expected.body.length} bytes`
}

function isWanted(value: string | undefined, wanted: Wanted): boolean {
  if (wanted === 'absent') return value === undefined
  return typeof wanted === 'string' ? value === wanted : value !== undefined && wanted.test(value)
}

function faultOfParts(parts: readonly Part[], type: string, body: Buffer): string | undefined {
  const boundary = /boundary=(\S+)$/.exec(type)?.[1] ?? ''
  let at = 0
  for (const [index, part] of parts.entries()) {
    const head =
      `${index === 0 ? '' : '\r\n'}--${boundary}\r\nContent-Type: ${part.type}\r\n` +
      `Content-Range: ${part.range}\r\n\r\n`
    if (body.toString('latin1', at, at + head.length) !== head) return `part ${index} has another head`
    at += head.length
    if (!body.subarray(at, at + part.body.length).equals(part.body)) return `part ${index} has another body`
    at += part.body.length
  }
  return body.toString('latin1', at) === `\r\n--${boundary}--\r\n`
    ? undefined
    : 'another end behind the parts'
}
