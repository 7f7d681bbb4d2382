import { type Refusal, refuse } from '../format/refusal.js'

/** Gives a turn back; calling it again does nothing. */
export type Release = () => void

/** A bounded number of turns with a bounded line of those who wait, first come first served. */
export class BoundedSemaphore {
  readonly #turnsMax: number
  readonly #waitingMax: number
  readonly #line: (() => void)[] = []
  #taken = 0

  constructor(turnsMax: number, waitingMax: number) {
    this.#turnsMax = turnsMax
    this.#waitingMax = waitingMax
  }

  /** Turns taken now. */
  get taken(): number {
    return this.#taken
  }

  /** Waits for a turn. Refusals: `busy` (the line is full), `late` (the signal fired first). */
  async take(signal?: AbortSignal): Promise<Release | Refusal> {
    if (signal?.aborted === true) return gaveUp
    if (this.#taken < this.#turnsMax) return this.#grant()
    if (this.#line.length >= this.#waitingMax) return refuse('busy', 'self', 'too many calls to nodes wait')
    return new Promise((resolve) => {
      const called = (): void => {
        signal?.removeEventListener('abort', left)
        resolve(this.#grant())
      }
      const left = (): void => {
        this.#line.splice(this.#line.indexOf(called), 1)
        resolve(gaveUp)
      }
      this.#line.push(called)
      signal?.addEventListener('abort', left, { once: true })
    })
  }

  #grant(): Release {
    this.#taken += 1
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#taken -= 1
      this.#line.shift()?.()
    }
  }
}

/** What a caller gets whose own signal fired. */
export const gaveUp: Refusal = refuse('late', 'client', 'the caller gave up')
