import type { Log } from '../../actor/log.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { writePatiently } from '../../store/patient-write.js'
import type { AcceptedItem } from '../records/uploads.js'

/**
 * Items that the log has and the tables lack, because the disk refused the transaction of the start. They are taken up when it
 * takes changes. Until then nothing is accepted or sold, because it is not known what was.
 */
export class LateItems {
  #isOver: boolean

  /** `count`: 0 where there are none. `takeUp` enters them; it throws where the disk refuses, and nothing was done then. */
  constructor(
    count: number,
    private readonly takeUp: () => readonly AcceptedItem[],
  ) {
    this.#isOver = count === 0
  }

  /** Undefined: the tables have all that was accepted before the start. */
  get refusal(): Refusal | undefined {
    return this.#isOver ? undefined : refuse('busy', 'self', 'the disk is full: earlier uploads wait for it')
  }

  /** Resolves with the accepted ones when the tables have them. Undefined: the service ends first. */
  async entered(
    closing: AbortSignal,
    logger: Pick<Log, 'error' | 'info'>,
  ): Promise<readonly AcceptedItem[] | undefined> {
    let taken: readonly AcceptedItem[] = []
    const write = (): void => {
      if (!this.#isOver) taken = this.takeUp()
      this.#isOver = true
    }
    return (await writePatiently(write, closing, logger)) ? taken : undefined
  }
}
