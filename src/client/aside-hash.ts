import { ClientError } from './errors.js'
import { type Assembly, initialState, layout, sha384Module } from './sha384-module.js'

/** SHA-384 of bytes that come in pieces, computed beside what else this thread does, where there are other threads. */
export interface AsideHash {
  /** Takes the next bytes. A promise: so much waits to be hashed that the caller should wait, too. */
  update(piece: Uint8Array): Promise<void> | undefined
  /** Once only. Rejects where the other thread failed. */
  digest(): Promise<Uint8Array>
  /** Where the digest is not wanted any more. */
  drop(): void
}

/** Memory that both threads can use, or that goes from one to the other. */
interface Batch {
  readonly number: number
  bytes: Uint8Array<ArrayBufferLike>
}

/** A message to a thread: the next `size` bytes of a job, and whether they are its last; `drop` ends it without an answer. */
interface Order {
  readonly job: number
  readonly size: number
  readonly isLast: boolean
  readonly drop?: true
}

/** A message of a thread: so many bytes of a job were hashed, and perhaps its digest. The batch is given back. */
interface News {
  readonly job: number
  readonly number: number
  readonly size: number
  readonly digest?: Uint8Array
  /** The batch's memory, where it goes from one thread to the other. */
  readonly bytes?: Uint8Array<ArrayBufferLike>
}

interface Thread {
  post(order: Order, batch: Batch): void
  /** Memory for the batch of this number, once for each number. */
  memory(number: number): Uint8Array<ArrayBufferLike>
  /** Keeps the process alive while it works, where threads would not. */
  hold(isWorking: boolean): void
}

type StartThread = (news: (news: News) => void, failed: (error: Error) => void) => Thread

/** Bytes of a message: what is hashed behind the last byte of a content is at most so much. */
const batchBytes = 128 * 1024
/** Bytes of one content on their way to the other thread, at most; about what processors keep near them. */
const waitingBytesMax = 2 * 1024 * 1024

interface Job {
  waiting: number
  wake: (() => void) | undefined
  resolve(digest: Uint8Array): void
  reject(error: Error): void
}

/** One thread that hashes several things in turn. */
class HashThread {
  readonly #jobs = new Map<number, Job>()
  /** All batches by number, and those that no job uses: as many as were ever on their way at once. */
  readonly #batches: Batch[] = []
  readonly #spare: Batch[] = []
  readonly #thread: Thread
  #last = 0
  #failure: Error | undefined

  constructor(start: StartThread) {
    this.#thread = start(
      (news) => this.#onNews(news),
      (cause) => {
        const error = new ClientError('unavailable', cause.message, 'try again: without it then', { cause })
        this.#failure = error
        for (const [job, { reject, wake }] of this.#jobs) {
          this.#ended(job)
          reject(error)
          wake?.()
        }
      },
    )
  }

  get isBroken(): boolean {
    return this.#failure !== undefined
  }

  begin(): AsideHash {
    const job = ++this.#last
    const digest = new Promise<Uint8Array>((resolve, reject) => {
      this.#jobs.set(job, { waiting: 0, wake: undefined, resolve, reject })
    })
    // The caller gets a failure when it requests the digest.
    digest.catch((error) => error)
    this.#thread.hold(true)
    let batch = this.#batch()
    let size = 0
    const post = (isLast: boolean): void => {
      const one = this.#jobs.get(job)
      if (one === undefined) return
      one.waiting += size
      this.#thread.post({ job, size, isLast }, batch)
      if (!isLast) batch = this.#batch()
      size = 0
    }
    return {
      update: (piece) => {
        for (let at = 0; at < piece.length; ) {
          const taken = Math.min(batchBytes - size, piece.length - at)
          batch.bytes.set(piece.subarray(at, at + taken), size)
          size += taken
          at += taken
          if (size === batchBytes) post(false)
          if (!this.#jobs.has(job)) return undefined
        }
        const one = this.#jobs.get(job)
        if (one === undefined || one.waiting < waitingBytesMax) return undefined
        return new Promise((resolve) => {
          one.wake = resolve
        })
      },
      digest() {
        post(true)
        return digest
      },
      drop: () => {
        if (!this.#jobs.has(job)) return
        this.#thread.post({ job, size: 0, isLast: true, drop: true }, batch)
        this.#ended(job)
      },
    }
  }

  #batch(): Batch {
    const spare = this.#spare.pop()
    if (spare !== undefined) return spare
    const number = this.#batches.length
    const batch = { number, bytes: this.#thread.memory(number) }
    this.#batches.push(batch)
    return batch
  }

  #onNews({ job, number, size, digest, bytes }: News): void {
    const batch = this.#batches[number] as Batch
    if (bytes !== undefined) batch.bytes = bytes
    this.#spare.push(batch)
    const one = this.#jobs.get(job)
    if (one === undefined) return
    one.waiting -= size
    if (one.waiting < waitingBytesMax) one.wake?.()
    if (digest === undefined) return
    this.#ended(job)
    one.resolve(digest)
  }

  #ended(job: number): void {
    this.#jobs.delete(job)
    if (this.#jobs.size === 0) this.#thread.hold(false)
  }
}

interface NodeWorker {
  on(event: string, listen: (value: never) => void): void
  postMessage(message: object): void
  ref(): void
  unref(): void
}

/** The program of a thread in Node, Deno and Bun. */
const nodeProgram = `
const { parentPort } = require('node:worker_threads')
const { createHash } = require('node:crypto')
const [jobs, batches] = [new Map(), []]
parentPort.on('message', ({ number, shared, job, size, isLast, drop }) => {
  if (shared) {
    batches[number] = shared
    return
  }
  const hash = jobs.get(job) ?? createHash('sha384')
  hash.update(batches[number].subarray(0, size))
  if (isLast) jobs.delete(job)
  else jobs.set(job, hash)
  const digest = isLast && !drop ? new Uint8Array(hash.digest()) : undefined
  parentPort.postMessage({ job, number, size, digest })
})
`

type NodeThreads = {
  readonly Worker: new (program: string, options: { eval: true }) => NodeWorker
}

function nodeThreads(): NodeThreads | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => NodeThreads | undefined }
  }
  return process?.getBuiltinModule?.('node:worker_threads')
}

function startNodeThread({ Worker }: NodeThreads): StartThread {
  return (news, failed) => {
    const worker = new Worker(nodeProgram, { eval: true })
    worker.on('message', news as (value: never) => void)
    worker.on('error', failed as (value: never) => void)
    worker.on('exit', () => failed(new Error('the thread that hashes has ended')))
    worker.unref()
    return {
      post: (order, { number }) => worker.postMessage({ ...order, number }),
      // Shared once, and then named by a number. V8 counts memory in a message as new each time, also where it is shared, and a
      // large amount starts the garbage collector.
      memory: (number) => {
        const shared = new Uint8Array(new SharedArrayBuffer(batchBytes))
        worker.postMessage({ number, shared })
        return shared
      },
      hold: (isWorking) => (isWorking ? worker.ref() : worker.unref()),
    }
  }
}

/**
 * SHA-384 by the module of `sha384Module`. Needs nothing from outside of itself: workers get it as text.
 */
export function streamingHash(
  Instance: Assembly['Instance'],
  module: object,
  state: BigUint64Array,
  input: number,
  inputBytes: number,
): { update(piece: Uint8Array): void; digest(): Uint8Array } {
  const { memory, blocks } = new Instance(module).exports
  new BigUint64Array(memory.buffer, 0, 8).set(state)
  const bytes = new Uint8Array(memory.buffer, input, inputBytes)
  let filled = 0
  let size = 0
  return {
    update(piece) {
      size += piece.length
      for (let at = 0; at < piece.length; ) {
        const taken = Math.min(inputBytes - filled, piece.length - at)
        bytes.set(piece.subarray(at, at + taken), filled)
        filled += taken
        at += taken
        if (filled < inputBytes) continue
        blocks(input, input + inputBytes)
        filled = 0
      }
    },
    digest() {
      // The rest, one bit, zeros, and the length in bits as 16 bytes.
      const whole = Math.ceil((filled + 17) / 128) * 128
      const tail = new Uint8Array(whole)
      tail.set(bytes.subarray(0, filled))
      tail[filled] = 128
      new DataView(tail.buffer).setBigUint64(whole - 8, BigInt(size) * BigInt(8))
      for (let at = 0; at < whole; at += inputBytes) {
        const part = tail.subarray(at, at + inputBytes)
        bytes.set(part)
        blocks(input, input + part.length)
      }
      const [words, digest] = [new BigUint64Array(memory.buffer, 0, 6), new DataView(new ArrayBuffer(48))]
      words.forEach((word, at) => {
        digest.setBigUint64(8 * at, word)
      })
      return new Uint8Array(digest.buffer)
    },
  }
}

const browserProgram = `
const make = ${streamingHash.toString()}
const jobs = new Map()
let start
onmessage = ({ data }) => {
  if (data.module) { start = () => make(WebAssembly.Instance, data.module, data.state, data.input, data.inputBytes); return }
  const { job, number, bytes, size, isLast, drop } = data
  const hash = jobs.get(job) ?? start()
  hash.update(bytes.subarray(0, size))
  if (isLast) jobs.delete(job)
  else jobs.set(job, hash)
  const digest = isLast && !drop ? hash.digest() : undefined
  postMessage({ job, number, bytes, size, digest }, [bytes.buffer])
}
`

interface BrowserWorker {
  onmessage: (event: { readonly data: News }) => void
  onerror: (event: { readonly message?: string; preventDefault(): void }) => void
  postMessage(message: object, transfer?: ArrayBufferLike[]): void
}

type BrowserScope = {
  readonly Worker?: new (url: string) => BrowserWorker
  readonly WebAssembly?: Assembly
}

function startBrowserThread(Worker: new (url: string) => BrowserWorker, module: object): StartThread {
  return (news, failed) => {
    const url = URL.createObjectURL(new Blob([browserProgram], { type: 'text/javascript' }))
    const worker = new Worker(url)
    worker.onmessage = ({ data }) => news(data)
    worker.onerror = (event) => {
      event.preventDefault()
      failed(new Error(`the thread that hashes failed: ${event.message ?? 'it was not allowed to start'}`))
    }
    worker.postMessage({ module, state: initialState(), ...layout })
    return {
      // Pages have shared memory only where they are isolated from other origins.
      post: (order, { number, bytes }) => worker.postMessage({ ...order, number, bytes }, [bytes.buffer]),
      memory: () => new Uint8Array(batchBytes),
      hold: () => undefined,
    }
  }
}

/** Where no thread may be started (a service worker), the module hashes here, piece by piece. */
function inThisThread({ Instance }: Assembly, module: object): AsideHash {
  const hash = streamingHash(Instance, module, initialState(), layout.input, layout.inputBytes)
  return {
    update: (piece) => void hash.update(piece),
    digest: async () => hash.digest(),
    drop: () => undefined,
  }
}

/** Two: several contents are fetched at once, and more would only keep the readers from their processors. */
const threadsMax = 2
const threads: HashThread[] = []
let turn = 0
let compiled: Promise<object | undefined> | undefined

function threadBy(start: StartThread): HashThread | undefined {
  const at = turn++ % threadsMax
  threads[at] ??= new HashThread(start)
  return threads[at]?.isBroken === true ? undefined : threads[at]
}

/** Begins a hash. Undefined: here is nothing that hashes pieces fast. */
export async function asideSha384(): Promise<AsideHash | undefined> {
  const node = nodeThreads()
  if (node !== undefined) return threadBy(startNodeThread(node))?.begin()
  const { Worker, WebAssembly } = globalThis as BrowserScope
  if (WebAssembly === undefined) return undefined
  // A page's policy may forbid it.
  compiled ??= WebAssembly.compile(sha384Module()).catch(() => undefined)
  const module = await compiled
  if (module === undefined) return undefined
  const thread = Worker === undefined ? undefined : threadBy(startBrowserThread(Worker, module))
  return thread?.begin() ?? inThisThread(WebAssembly, module)
}
