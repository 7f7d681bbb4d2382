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

/** A signal that fires with the caller's, and where nothing has come for some time. */
export class Patience {
  readonly #controller = new AbortController()
  readonly #stop = (): void => this.#controller.abort(this.given?.reason)
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly ms: number,
    private readonly given: AbortSignal | undefined,
  ) {
    this.begin()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** From now on something has to come. */
  begin(): void {
    this.rest()
    if (this.given?.aborted === true) this.#stop()
    this.given?.addEventListener('abort', this.#stop, { once: true })
    this.#timer = setTimeout(
      () => this.#controller.abort(new Error(`nothing came for ${this.ms} ms`)),
      this.ms,
    )
  }

  /** Nothing is waited for: the reader may take its time. A caller's signal may outlive many requests, so it is left, too. */
  rest(): void {
    clearTimeout(this.#timer)
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
