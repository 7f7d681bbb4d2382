import type { Backoff } from '../actor/backoff.js'
import { type Clock, endsWithin, type Timer } from '../actor/clock.js'
import type { CheckedPair } from './check.js'

export interface RenewalOptions {
  /** Names that the certificate must have. */
  readonly names: readonly string[]
  /** The certificate in use that was issued for them; undefined where there is none. */
  readonly current: () => CheckedPair | undefined
  /** Gets a new one and puts it in use. Where `end` fires it gives up what it can. */
  readonly issue: (end: AbortSignal) => Promise<void>
  /** After a failure no further attempt is made while it is on. */
  readonly backoff: Backoff
  readonly onFailure: (error: unknown) => void
  readonly clock: Clock
}

/** How often it is looked whether a certificate is due. */
const lookMs = 30_000
/** A stop waits for an attempt at most so long: one that ends at any moment leaves what the next one can go on with. */
const stopMs = 1000

/** Renews a certificate in the background, from when a third of its lifetime is left. One attempt at a time. */
export class Renewal {
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  readonly #end = new AbortController()

  constructor(private readonly options: RenewalOptions) {}

  start(): void {
    this.#timer = this.options.clock.every(lookMs, () => this.#look())
    this.#look()
  }

  /** Makes no further attempt. Resolves when a running one has ended, however it ends, or a second later. */
  async stop(): Promise<void> {
    this.#timer?.cancel()
    this.#end.abort()
    if (this.#running !== undefined) await endsWithin(this.#running, stopMs)
  }

  #look(): void {
    const { names, current, backoff, clock } = this.options
    if (this.#running !== undefined || backoff.isOn) return
    if (!isDue(current(), names, clock.now())) return
    this.#running = this.#attempt().finally(() => {
      this.#running = undefined
    })
  }

  async #attempt(): Promise<void> {
    const { issue, backoff, onFailure } = this.options
    try {
      await issue(this.#end.signal)
      backoff.well()
    } catch (error) {
      backoff.failed()
      if (!this.#end.signal.aborted) onFailure(error)
    }
  }
}

/** Whether a certificate is missing, lacks a name, or has at most a third of its lifetime left. */
export function isDue(pair: CheckedPair | undefined, names: readonly string[], nowMs: number): boolean {
  if (pair === undefined || names.some((name) => !pair.names.includes(name))) return true
  return pair.notAfterMs - nowMs <= (pair.notAfterMs - pair.notBeforeMs) / 3
}
