import { type Id, idBytes } from '../format/id.js'
import type { ProofAgenda } from './proof-agenda.js'

/** Roots that are read in one step. */
const rootsMax = 1000

const first = new Uint8Array(1)

/** Since when the root has waited that has waited longest, found by reading all of them in steps. */
export class OldestWait {
  #from: Uint8Array = first
  #inRound: number | undefined
  #sinceMs: number | undefined

  constructor(private readonly agenda: Pick<ProofAgenda, 'waiting'>) {}

  /** Milliseconds since 1970, as of the last round; undefined where none waited. */
  get sinceMs(): number | undefined {
    return this.#sinceMs
  }

  /** Reads on. */
  step(): void {
    const roots = this.agenda.waiting(this.#from, undefined, rootsMax)
    for (const { root } of roots) this.#inRound = Math.min(this.#inRound ?? root.sinceMs, root.sinceMs)
    const last: Id | undefined = roots.length < rootsMax ? undefined : roots.at(-1)?.rootId
    if (last !== undefined) {
      this.#from = Buffer.concat([idBytes(last), Buffer.from([0])])
      return
    }
    this.#from = first
    this.#sinceMs = this.#inRound
    this.#inRound = undefined
  }
}
