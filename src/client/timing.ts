import { ClientError } from './errors.js'

/** Time for the client: the one place with timers here, because it must not bring along what only Node has. */

/** Milliseconds since 1970. */
export function nowMs(): number {
  return Date.now()
}

/** Resolves after `ms`, or rejects with an `aborted` error as soon as the signal fires. */
export function waited(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(abortedError(signal))
    const stop = (): void => {
      clearTimeout(timer)
      reject(abortedError(signal))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** The result of `work` within `ms`; after that it rejects with `unavailable`, and the result of `work` is ignored. */
export async function soon<Value>(work: Promise<Value>, ms: number, signal?: AbortSignal): Promise<Value> {
  const controller = new AbortController()
  const late = waited(ms, controller.signal).then(() => {
    throw new ClientError('unavailable', `no answer within ${ms} ms`, 'try again later')
  })
  // Only the first of the two counts.
  late.catch((error) => error)
  work.catch((error) => error)
  try {
    throwIfAborted(signal)
    return await Promise.race([work, late])
  } finally {
    controller.abort()
  }
}

/**
 * A signal that fires with the caller's, and where nothing has come for some time. Its timer is not set anew for each piece of a
 * body: when it fires it looks since when something is waited for.
 */
export class Patience {
  readonly #controller = new AbortController()
  readonly #stop = (): void => this.#controller.abort(this.given?.reason)
  #timer: ReturnType<typeof setTimeout> | undefined
  #sinceMs: number | undefined
  #waitedMs = 0

  constructor(
    private readonly ms: number,
    private readonly given: AbortSignal | undefined,
  ) {
    this.begin()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Begins, and begins again behind `end`. */
  begin(): void {
    if (this.given?.aborted === true) this.#stop()
    this.given?.addEventListener('abort', this.#stop, { once: true })
    this.wait()
  }

  /** From now on something has to come. */
  wait(): void {
    this.#sinceMs = performance.now()
    this.#timer ??= setTimeout(() => this.#look(), this.ms)
  }

  /** Something came: until the next `wait` the reader may take its time. */
  came(): void {
    if (this.#sinceMs !== undefined) this.#waitedMs += performance.now() - this.#sinceMs
    this.#sinceMs = undefined
  }

  /** Milliseconds for which something was waited for, all in all. */
  get waitedMs(): number {
    return this.#waitedMs
  }

  #look(): void {
    this.#timer = undefined
    if (this.#sinceMs === undefined) return
    const left = this.#sinceMs + this.ms - performance.now()
    // Timers may fire a little early.
    if (left > 1) this.#timer = setTimeout(() => this.#look(), left)
    else this.#controller.abort(new Error(`nothing came for ${this.ms} ms`))
  }

  /** Nothing is waited for any more. A caller's signal may outlive many requests, so it is left, too. */
  end(): void {
    this.came()
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.given?.removeEventListener('abort', this.#stop)
  }
}

/** What is thrown where the caller's signal fired. */
export function abortedError(signal?: AbortSignal): ClientError {
  return new ClientError('aborted', 'the caller stopped it', 'call again to go on', { cause: signal?.reason })
}

/** Throws where the caller's signal has fired. */
export function throwIfAborted(signal?: AbortSignal): void {
  if (signal?.aborted === true) throw abortedError(signal)
}
