import { processorTime } from '../actor/processor-time.js'
import type { CatalogRequest } from '../catalog/catalog-messages.js'
import type { Id } from '../format/id.js'
import { insist } from '../source/keeping/commit-batch.js'
import type { VerifierOptions } from '../source/source-defaults.js'
import { tryWrite } from '../store/disk-error.js'
import { RootLook } from './root-look.js'
import type { VerifierParts } from './verifier-parts.js'

/** What came of looks at some roots. */
export interface LooksResult {
  /** Where any of them was answered, the nodes answer. */
  readonly answered: 'answered' | 'away' | 'nothing'
  /** Looks for which a request was sent and answered, and those of them whose root some node has. */
  readonly done: number
  readonly found: number
}

/** Looks at several roots beside each other, whose outcomes are written down together. */
export class RootLooks {
  readonly #looks: readonly RootLook[]

  constructor(
    readonly rootIds: readonly Id[],
    private readonly parts: VerifierParts,
    options: VerifierOptions,
  ) {
    this.#looks = rootIds.map((rootId) => new RootLook(rootId, parts, options))
  }

  stop(): void {
    for (const look of this.#looks) look.stop()
  }

  /** Rejects only because of a bug. Where it was stopped nothing is written down: the next process looks again. */
  async run(): Promise<LooksResult> {
    const { keeper, onProven } = this.parts
    const attributes = (await Promise.all(this.#looks.map((look) => look.run()))).flat()
    if (attributes.length > 0) {
      const isWritten = await insist(keeper, { kind: 'learn', attributes })
      if (isWritten) onProven?.(attributes.map(({ id }) => id))
      for (const look of this.#looks) look.written(isWritten)
    }
    const requests = this.#looks
      .flatMap((look) => look.resigned())
      .map((id): CatalogRequest => ({ kind: 'resigned', id }))
    if (requests.length > 0) await insist(keeper, { kind: 'all', requests })
    this.#write()
    const answers = this.#looks.map(({ answered }) => answered)
    const done = answers.filter((one) => one === 'found' || one === 'absent').length
    return {
      answered: done > 0 ? 'answered' : answers.includes('away') ? 'away' : 'nothing',
      done,
      found: answers.filter((one) => one === 'found').length,
    }
  }

  /** Looks again later, whatever became of the looks. */
  putOff(): void {
    for (const look of this.#looks) look.putOff()
    this.#write()
  }

  #write(): void {
    const { agenda, budget, clock } = this.parts
    const beganMs = processorTime.monotonic()
    const outcomes = this.#looks.flatMap((look) => look.outcome() ?? [])
    tryWrite(() => agenda.recordLooks(outcomes, clock.now()))
    budget.spend(processorTime.monotonic() - beganMs)
  }
}
