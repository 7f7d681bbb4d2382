import { abortedError, throwIfAborted } from '../timing.js'

interface Running<Value> {
  readonly result: Promise<Value>
  readonly controller: AbortController
  waiting: number
  isDone: boolean
}

/** Results by key, each made once for all concurrent requests. The newest are kept; what failed is not. */
export class SharedWork<Value> {
  readonly #running = new Map<string, Running<Value>>()

  constructor(private readonly keptMax: number) {}

  /** `work` is stopped by its own signal when `signal` of everybody who waits for it has fired. */
  async of(key: string, work: (signal: AbortSignal) => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    throwIfAborted(signal)
    const one = this.#running.get(key) ?? this.#start(key, work)
    this.#keep(key, one)
    one.waiting += 1
    let leave: (() => void) | undefined
    const left = new Promise<never>((_, reject) => {
      if (signal === undefined) return
      leave = () => reject(abortedError(signal))
      signal.addEventListener('abort', leave, { once: true })
    })
    try {
      return await Promise.race([one.result, left])
    } finally {
      if (leave !== undefined) signal?.removeEventListener('abort', leave)
      one.waiting -= 1
      if (one.waiting === 0 && !one.isDone) this.#stop(key, one)
    }
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<Value>): Running<Value> {
    const controller = new AbortController()
    const one: Running<Value> = { result: work(controller.signal), controller, waiting: 0, isDone: false }
    one.result.then(
      () => {
        one.isDone = true
      },
      () => {
        one.isDone = true
        this.#forget(key, one)
      },
    )
    return one
  }

  #stop(key: string, one: Running<Value>): void {
    this.#forget(key, one)
    one.controller.abort()
  }

  #forget(key: string, one: Running<Value>): void {
    if (this.#running.get(key) === one) this.#running.delete(key)
  }

  #keep(key: string, one: Running<Value>): void {
    this.#running.delete(key)
    this.#running.set(key, one)
    for (const [oldest, { isDone }] of this.#running) {
      if (this.#running.size <= this.keptMax) break
      if (isDone) this.#running.delete(oldest)
    }
  }
}
