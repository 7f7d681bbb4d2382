import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { sayDraining } from '../actor/stopping.js'

/** What a machine still owes that is being drained. */
export interface DrainState {
  /** `drained`: nothing. */
  readonly state: 'draining' | 'drained'
  /** Accepted items that are in no bundle. */
  readonly items: number
  /** Bundles that are not permanent. */
  readonly bundles: number
  /** Changes of lists that other machines do not have. */
  readonly changes: number
}

/** Load balancers see in the health answers within this time that nothing is to be sent here; then new uploads are refused. */
const noticeMs = 10_000
/** Numbers of what is owed are so old at most. */
const countedMs = 15_000

/** Whether this machine is drained: hears the order with each heartbeat. */
export class Drain {
  #heardMs: number | undefined
  #last: DrainState['state'] | undefined

  /** `owed`: items and bundles, by the meters of the upload service. */
  constructor(
    private readonly owed: () => Pick<DrainState, 'items' | 'bundles'>,
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly log: Pick<Log, 'info'>,
  ) {}

  /** `orderedMs`: how long ago it was ordered; undefined: it is not. `changes`: as in `DrainState`. */
  hear(orderedMs: number | undefined, changes: number): DrainState | undefined {
    const state = orderedMs === undefined ? undefined : this.#state(orderedMs, changes)
    if (state?.state !== this.#last) this.log.info({ ...state }, sentences[state?.state ?? 'open'])
    this.#last = state?.state
    if (state === undefined) this.#heardMs = undefined
    sayDraining(orderedMs === undefined ? 'no' : orderedMs < noticeMs ? 'noted' : 'closed')
    return state
  }

  #state(orderedMs: number, changes: number): DrainState {
    const now = this.clock.monotonic()
    this.#heardMs ??= now
    const { items, bundles } = this.owed()
    const isCounted = orderedMs >= noticeMs + countedMs && now - this.#heardMs >= countedMs
    const isDone = isCounted && items + bundles + changes === 0
    return { state: isDone ? 'drained' : 'draining', items, bundles, changes }
  }
}

const sentences = {
  open: 'this machine takes uploads again',
  draining: 'this machine is being drained: health answers say 503, and soon no new uploads are taken',
  drained: 'this machine is drained: all that it accepted is permanent, and it may be stopped',
} as const
