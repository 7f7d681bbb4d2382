import type { Clock } from '../actor/clock.js'

/** A whole answer of a node. */
export interface KeptAnswer {
  readonly status: number
  readonly type: string
  readonly body: Buffer
}

interface Kept {
  readonly answer: KeptAnswer
  readonly sinceMs: number
  readonly untilMs: number
}

/** Counted for each answer beside its body. */
const overheadBytes = 500

/**
 * Answers of nodes in memory, each for its own time, all together within a number of bytes; the least recently used are
 * dropped first.
 */
export class KeptAnswers {
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  constructor(
    private readonly maxBytes: number,
    private readonly clock: Clock,
  ) {}

  /** The answer to `path` and its age in whole seconds. */
  find(path: string): { readonly answer: KeptAnswer; readonly ageSeconds: number } | undefined {
    const kept = this.#kept.get(path)
    if (kept === undefined) return undefined
    const now = this.clock.monotonic()
    this.#drop(path)
    if (now >= kept.untilMs) return undefined
    this.#add(path, kept)
    return { answer: kept.answer, ageSeconds: Math.floor((now - kept.sinceMs) / 1000) }
  }

  keep(path: string, answer: KeptAnswer, seconds: number): void {
    const sinceMs = this.clock.monotonic()
    this.#drop(path)
    this.#add(path, { answer, sinceMs, untilMs: sinceMs + seconds * 1000 })
    while (this.#bytes > this.maxBytes) {
      const [oldest] = this.#kept.keys()
      if (oldest === undefined) break
      this.#drop(oldest)
    }
  }

  #add(path: string, kept: Kept): void {
    this.#kept.set(path, kept)
    this.#bytes += kept.answer.body.length + overheadBytes
  }

  #drop(path: string): void {
    const kept = this.#kept.get(path)
    if (kept === undefined) return
    this.#kept.delete(path)
    this.#bytes -= kept.answer.body.length + overheadBytes
  }
}
