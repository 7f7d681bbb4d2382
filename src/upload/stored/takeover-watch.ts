import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { holderOf, type Takeover, type Takeovers } from './takeovers.js'

export interface TakeoverWatchParts {
  readonly takeovers: Takeovers
  /** This one. */
  readonly machine: string
  /** Machines that were not seen for long, and did not stop by themselves. */
  readonly gone: () => Promise<readonly string[] | Refusal>
  /** Takes up what lies under a name. Resolves with the number of its items that were unknown here. */
  readonly adopt: (name: string) => Promise<number | Refusal>
  readonly onAdopted: (items: number) => void
  readonly clock: Clock
  readonly logger: Log
  readonly signal: AbortSignal
  /** A machine that is gone has so long to answer by the store. */
  readonly answerMs: number
  /** Between two looks at what still appears under a name that was taken over: a PUT may hang in the store. */
  readonly adoptMs: number
}

/**
 * Takes over the uploads of machines that are gone. A machine is gone where the others see no heartbeat of it, and where it does
 * not answer a question in the store: one that has lost its way to the database alone still does. When it comes back it finds
 * that its name is taken over, leaves those uploads to the machine that has them, and goes on under another name.
 */
export class TakeoverWatch {
  /** Machines that got a question, and when. */
  readonly #questioned = new Map<string, number>()
  /** When all that is this machine's was last taken up. */
  #adoptedMs = Number.NEGATIVE_INFINITY

  constructor(private readonly parts: TakeoverWatchParts) {}

  /** A refusal: the store or the database could not be reached; the next call goes on. Throws where the disk refuses. */
  async tend(): Promise<Refusal | undefined> {
    const { takeovers, machine, clock, adoptMs, signal } = this.parts
    const refusal = await this.#takeOver()
    if (refusal !== undefined || clock.monotonic() - this.#adoptedMs < adoptMs) return refusal
    const all = await takeovers.all(signal)
    if (isRefusal(all)) return all
    for (const [name, holder] of all) {
      const failed = holder.machine === machine ? await this.#adopt(name) : undefined
      if (failed !== undefined) return failed
    }
    this.#adoptedMs = clock.monotonic()
    return undefined
  }

  async #takeOver(): Promise<Refusal | undefined> {
    const { takeovers, machine, gone, signal } = this.parts
    const found = await gone()
    if (isRefusal(found)) return found
    const left = new Set(found.filter((one) => one !== machine))
    for (const one of this.#questioned.keys()) if (!left.has(one)) this.#questioned.delete(one)
    if (left.size === 0) return undefined
    const [names, all] = [await takeovers.names(signal), await takeovers.all(signal)]
    if (isRefusal(names)) return names
    if (isRefusal(all)) return all
    for (const one of left) {
      const its = names.filter((name) => holderOf(name, all) === one)
      const isSilent = its.length > 0 && (await this.#isSilent(one))
      if (isRefusal(isSilent)) return isSilent
      const failed = isSilent ? await this.#take(one, its, all) : undefined
      if (failed !== undefined) return failed
    }
    return undefined
  }

  /** Whether a machine has not answered a question for long enough. */
  async #isSilent(machine: string): Promise<boolean | Refusal> {
    const { takeovers, clock, answerMs, logger, signal } = this.parts
    const questionedMs = this.#questioned.get(machine)
    if (questionedMs === undefined) {
      const refusal = await takeovers.question(machine, this.parts.machine, signal)
      if (refusal !== undefined) return refusal
      this.#questioned.set(machine, clock.monotonic())
      return false
    }
    if (clock.monotonic() - questionedMs < answerMs) return false
    const hasQuestion = await takeovers.hasQuestion(machine, signal)
    if (isRefusal(hasQuestion) || hasQuestion) return hasQuestion
    logger.warn({ machine }, 'a machine reaches the object store, but not the database of the cluster')
    this.#questioned.delete(machine)
    return false
  }

  async #take(
    machine: string,
    names: readonly string[],
    all: ReadonlyMap<string, Takeover>,
  ): Promise<Refusal | undefined> {
    const { takeovers, logger, signal } = this.parts
    for (const name of names) {
      const number = (all.get(name)?.number ?? 0) + 1
      const isOurs = await takeovers.take(name, this.parts.machine, number, signal)
      if (isRefusal(isOurs)) return isOurs
      if (!isOurs) continue
      logger.warn({ machine, name }, 'the uploads of a machine that is gone are taken over')
      this.#adoptedMs = Number.NEGATIVE_INFINITY
    }
    this.#questioned.delete(machine)
    return takeovers.answer(machine, signal)
  }

  async #adopt(name: string): Promise<Refusal | undefined> {
    const { takeovers, machine, adopt, onAdopted, signal } = this.parts
    const refusal = await takeovers.revoke(name, machine, signal)
    if (refusal !== undefined) return refusal
    const items = await adopt(name)
    if (isRefusal(items)) return items
    if (items > 0) onAdopted(items)
    return undefined
  }
}
