import { besideFetch } from '../beside-fetch.js'
import { ClientError } from '../errors.js'
import { abortedError, Patience, throwIfAborted } from '../timing.js'
import { type DirectHead, directHead, endOfHead } from './direct-head.js'
import type { WholeAnswer } from './held-body.js'
import { isTooSlow } from './pace.js'

/**
 * Bodies in Node without a stream: the kernel writes them to the place where they stay. `fetch` takes twice the time of that, in
 * which the content can be hashed. Other platforms, and answers that are not plain, are left to `fetch`.
 */

interface NodeSocket {
  readonly destroyed: boolean
  on(event: 'error' | 'close' | 'timeout', listen: () => void): void
  write(text: string): void
  ref(): void
  unref(): void
  destroy(): void
}

interface OnRead {
  /** Memory for what comes next. */
  buffer(): Uint8Array
  callback(size: number, memory: Uint8Array): boolean
}

interface ConnectOptions {
  readonly host: string
  readonly port: number
  readonly noDelay: true
  /** It fails after so many milliseconds without a byte. */
  readonly timeout: number
  readonly onread: OnRead
  readonly servername?: string
}

interface NodeSockets {
  connect(options: ConnectOptions): NodeSocket
}

/** Longer heads are left to `fetch`. */
const headBytesMax = 64 * 1024
/** Written by the kernel at once: it is hashed while it lies in the processor's cache. */
const windowBytes = 512 * 1024
/** A connection waits so long for the next question; servers wait a little longer. */
const idleMs = 4000
/** Connections that wait, for each gateway. */
const idleMax = 4

export interface DirectQuestion {
  readonly url: string
  /** What is longer has a head, and no body. */
  readonly bytesMax: number
  readonly patienceMs: number
  readonly signal?: AbortSignal | undefined
}

/** One answer on its way. */
class Exchange implements WholeAnswer {
  readonly isDirect = true
  status = 0
  headers = new Headers()
  readonly begun: Promise<boolean>
  readonly #patience: Patience
  readonly #ended: Promise<void>
  #head: DirectHead | undefined
  #isUnsuited = false
  #bytes = new Uint8Array(0)
  #came = 0
  #seen = 0
  #each: ((piece: Uint8Array) => void) | undefined
  #begin: (isPlain: boolean) => void = () => undefined
  #end: (error?: Error) => void = () => undefined

  constructor(
    private readonly question: DirectQuestion,
    private readonly connection: Connection,
    /** Where the head is read to. */
    private readonly memory: Uint8Array,
  ) {
    this.#patience = new Patience(question.patienceMs, question.signal)
    this.begun = new Promise((resolve) => {
      this.#begin = resolve
    })
    this.#ended = new Promise((resolve, reject) => {
      this.#end = (error) => (error === undefined ? resolve() : reject(error))
    })
    this.#ended.catch((error) => error)
    this.#patience.signal.addEventListener('abort', this.#stop, { once: true })
  }

  get url(): string {
    return this.question.url
  }

  readonly #stop = (): void => this.drop()

  /** The answer is one that only `fetch` reads. */
  get isUnsuited(): boolean {
    return this.#isUnsuited
  }

  /** Memory for what comes next. */
  room(): Uint8Array {
    if (this.#head === undefined) return this.memory.subarray(this.#came)
    return this.#bytes.subarray(this.#came, this.#came + windowBytes)
  }

  /** So many bytes came into `room`. False: the connection is of no use any more. */
  took(size: number): boolean {
    this.#came += size
    return this.#head === undefined ? this.#readHead(size) : this.#readBody()
  }

  #readHead(size: number): boolean {
    const { memory } = this
    const came = this.#came
    const end = endOfHead(memory.subarray(0, came), Math.max(0, came - size - 3))
    // The head is waited for as a whole, as `fetch` does: it must not come byte by byte for days.
    if (end === undefined && came < memory.length) return true
    const head = end === undefined ? undefined : directHead(memory.subarray(0, end))
    const rest = memory.subarray(end, came)
    if (head === undefined || rest.length > head.length) {
      this.#isUnsuited = true
      return false
    }
    this.#head = head
    this.status = head.status
    this.headers = head.headers
    const isHeld = head.status === 200 && head.length <= this.question.bytesMax
    const isRoom = isHeld && this.#makeRoom(head.length)
    this.#begin(true)
    if (!isRoom) return false
    this.#bytes.set(rest)
    this.#came = rest.length
    return this.#readBody()
  }

  /** Allocates memory for the body. False: there is not enough, and the exchange has ended with an error. */
  #makeRoom(length: number): boolean {
    try {
      this.#bytes = new Uint8Array(length)
      return true
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      const found = `${this.question.url} has ${length} bytes, and there is no memory for them`
      this.#end(new ClientError('too-large', found, 'ask for a range, or set a lower holdBytesMax'))
      return false
    }
  }

  #readBody(): boolean {
    this.#patience.came()
    this.#show()
    const { url, patienceMs } = this.question
    if (this.#came === this.#bytes.length) {
      this.#over()
      this.connection.rest(this.#head?.isLasting === true)
      return true
    }
    if (isTooSlow(this.#patience, patienceMs, this.#came)) {
      this.#over(new ClientError('unavailable', `${url} is too slow`, 'try again, or another gateway'))
      return false
    }
    this.#patience.wait()
    return true
  }

  #show(): void {
    if (this.#each === undefined || this.#seen === this.#came) return
    this.#each(this.#bytes.subarray(this.#seen, this.#came))
    this.#seen = this.#came
  }

  #over(error?: Error): void {
    this.#patience.end()
    this.#patience.signal.removeEventListener('abort', this.#stop)
    this.#begin(false)
    this.#end(error)
  }

  /** The connection ended. */
  broke(): void {
    const { url } = this.question
    this.#over(new ClientError('unavailable', `${url} broke off`, 'try again', { cause: this.reason }))
  }

  /** Why it was given up: the caller's signal, or silence; undefined where it was not. */
  get reason(): unknown {
    return this.#patience.signal.reason
  }

  async held(each: (piece: Uint8Array) => Promise<void> | undefined): Promise<Uint8Array<ArrayBuffer>> {
    // Direct bodies are hashed by this thread, which never has to wait.
    this.#each = (piece) => void each(piece)
    this.#show()
    try {
      await this.#ended
    } catch (error) {
      const { signal } = this.question
      throw signal?.aborted === true ? abortedError(signal) : error
    }
    return this.#bytes
  }

  drop(): void {
    this.connection.close()
  }
}

/** One socket, and the exchange that uses it. */
class Connection {
  readonly #socket: NodeSocket
  readonly #memory = new Uint8Array(headBytesMax)
  #exchange: Exchange | undefined

  constructor(
    sockets: NodeSockets,
    to: Pick<ConnectOptions, 'host' | 'port' | 'servername'>,
    private readonly whenIdle: (connection: Connection) => boolean,
  ) {
    const onread: OnRead = {
      buffer: () => this.#exchange?.room() ?? this.#memory,
      callback: (size) => {
        // Bytes behind an answer belong to no request.
        const isRight = this.#exchange?.took(size) ?? false
        if (!isRight) this.close()
        return isRight
      },
    }
    this.#socket = sockets.connect({ ...to, noDelay: true, timeout: idleMs, onread })
    this.#socket.on('error', () => this.close())
    this.#socket.on('timeout', () => this.#exchange ?? this.close())
    this.#socket.on('close', () => this.#exchange?.broke())
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  ask(question: DirectQuestion, { host, pathname, search }: URL): Exchange {
    this.#socket.ref()
    this.#exchange = new Exchange(question, this, this.#memory)
    const lines = [`Host: ${host}`, 'Accept: */*', 'Accept-Encoding: identity', 'User-Agent: node']
    this.#socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    return this.#exchange
  }

  rest(isLasting: boolean): void {
    this.#exchange = undefined
    if (isLasting && this.whenIdle(this)) this.#socket.unref()
    else this.close()
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** Connections to gateways. */
export class DirectLines {
  readonly #idle = new Map<string, Connection[]>()
  /** Gateways that answered in a way that only `fetch` reads. */
  readonly #unsuited = new Set<string>()

  /** `usual`: the platform's own `fetch`. */
  constructor(private readonly usual: typeof fetch) {}

  /** Requests a whole content. Undefined: `fetch` has to. Rejects with `unavailable` where no bytes come for too long. */
  async ask(question: DirectQuestion): Promise<WholeAnswer | undefined> {
    // A signal that has fired already sends no event.
    throwIfAborted(question.signal)
    const url = new URL(question.url)
    if (this.#unsuited.has(url.origin) || url.username !== '' || url.password !== '') return undefined
    const exchange = this.#connection(url)?.ask(question, url)
    if (exchange === undefined || (await exchange.begun)) return exchange
    const { signal, patienceMs } = question
    if (signal?.aborted === true) throw abortedError(signal)
    if (exchange.reason !== undefined) {
      const message = `${question.url} was silent for ${patienceMs} ms`
      throw new ClientError('unavailable', message, 'try again later', { cause: exchange.reason })
    }
    if (exchange.isUnsuited) this.#unsuited.add(url.origin)
    return undefined
  }

  #connection(url: URL): Connection | undefined {
    if (besideFetch('node:net', this.usual) === undefined) return undefined
    const idle = this.#idle.get(url.origin) ?? []
    for (let one = idle.pop(); one !== undefined; one = idle.pop()) if (one.isOpen) return one
    return this.#connect(url)
  }

  #connect({ protocol, hostname, port, origin }: URL): Connection | undefined {
    const isTls = protocol === 'https:'
    if (!isTls && protocol !== 'http:') return undefined
    const sockets = besideFetch<NodeSockets>(isTls ? 'node:tls' : 'node:net', this.usual)
    if (sockets === undefined) return undefined
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    const isName = !/^[\d.]+$|:/.test(host)
    const to = { host, port: Number(port) || (isTls ? 443 : 80), ...(isName && { servername: host }) }
    const idle = this.#idle.get(origin) ?? []
    this.#idle.set(origin, idle)
    const whenIdle = (connection: Connection): boolean => idle.length < idleMax && idle.push(connection) > 0
    return new Connection(sockets, to, whenIdle)
  }
}
