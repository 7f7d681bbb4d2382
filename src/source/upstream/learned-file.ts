import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import type { Clock, Timer } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'

/** Something that learns, and whose knowledge outlives the process. */
export interface Learner {
  /** Grows with what is learned. */
  readonly changes: number
  /** As JSON. */
  kept(): unknown
  /** What `kept` of an earlier process gave, or anything at all. */
  takeOver(kept: unknown): void
}

/** At most once in this time the file is written anew. */
const writeEachMs = 5 * 60_000

/** A larger file is not ours. */
const fileMaxBytes = 4 * 2 ** 20

/**
 * What was learned of peers and nodes, in one small file (JSON, mode 0600: addresses may hold keys). A file that is missing or
 * damaged, and a disk that refuses it, cost no more than what is learned anew.
 */
export class LearnedFile {
  readonly #timer: Timer
  #written: number
  #writing: Promise<void> = Promise.resolve()
  #isFailing = false

  /** Has the learners take over what the file has. `learners`: by their names in it. */
  constructor(
    private readonly path: string,
    private readonly learners: Readonly<Record<string, Learner>>,
    private readonly log: Log,
    clock: Clock,
  ) {
    const kept = this.#read()
    for (const [name, learner] of Object.entries(learners)) learner.takeOver(kept?.[name])
    this.#written = this.#changes()
    this.#timer = clock.every(writeEachMs, () => this.#write())
  }

  /** Writes what is new. Never rejects. */
  async close(): Promise<void> {
    this.#timer.cancel()
    this.#write()
    await this.#writing
  }

  #changes(): number {
    return Object.values(this.learners).reduce((sum, { changes }) => sum + changes, 0)
  }

  #read(): Readonly<Record<string, unknown>> | undefined {
    try {
      const text = readFileSync(this.path, 'utf8')
      const read: unknown = text.length > fileMaxBytes ? undefined : JSON.parse(text)
      return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : undefined
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        this.log.warn({ err: error, path: this.path }, 'what was learned of peers and nodes cannot be read')
      return undefined
    }
  }

  #write(): void {
    const changes = this.#changes()
    if (changes === this.#written) return
    const kept = Object.entries(this.learners).map(([name, learner]) => [name, learner.kept()])
    const text = JSON.stringify(Object.fromEntries(kept))
    this.#writing = this.#writing.then(() => this.#put(text, changes))
  }

  async #put(text: string, changes: number): Promise<void> {
    const draft = `${this.path}.draft`
    try {
      await writeFile(draft, text, { mode: 0o600 })
      await rename(draft, this.path)
      this.#written = changes
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing)
        this.log.warn(
          { err: error, path: this.path },
          'what was learned of peers and nodes cannot be written',
        )
      this.#isFailing = true
    }
  }
}
