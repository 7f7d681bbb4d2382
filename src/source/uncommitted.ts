import type { Id } from '../format/id.js'
import type { Opening } from './opening.js'

/** Payloads that wait so: beyond, whoever brings one waits for its commit. Each takes some 2 KiB. */
const waitingMax = 8192

/**
 * Payloads that lie in a segment, whole and judged, and of which the catalog has not heard yet: commits are made for many at
 * once, and until then who asks for one is answered from here. Nothing of it outlives the process, nor does the payload's record.
 */
export class Uncommitted {
  readonly #openings = new Map<Id, Opening>()
  readonly #commits = new Set<Promise<void>>()

  get(id: Id): Opening | undefined {
    return this.#openings.get(id)
  }

  /** Remembers a payload until `commit` is over. Resolves at once where few wait, else with the commit. */
  async note(opening: Opening, commit: Promise<void>): Promise<void> {
    const { id } = opening.attributes
    this.#openings.set(id, opening)
    this.#commits.add(commit)
    const over = commit.finally(() => {
      this.#commits.delete(commit)
      if (this.#openings.get(id) === opening) this.#openings.delete(id)
    })
    if (this.#commits.size > waitingMax) await over
  }

  /** Resolves when nothing waits. */
  async settled(): Promise<void> {
    while (this.#commits.size > 0) await Promise.all(this.#commits)
  }
}
