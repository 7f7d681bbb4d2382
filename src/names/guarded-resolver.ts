import { Backoff, type BackoffOptions } from '../actor/backoff.js'
import { BoundedMap } from '../actor/bounded-map.js'
import { type Clock, withinTime } from '../actor/clock.js'
import { isRefusal, refuse } from '../format/refusal.js'
import {
  isUntrailed,
  type Name,
  type ResolveContext,
  type Resolver,
  type ResolverVerdict,
} from './names-port.js'

export interface GuardOptions extends BackoffOptions {
  /** Longest wait for one answer. */
  readonly timeoutMs: number
}

/** The last names that were answered, one of a base name: so many are kept to try the resolver with. */
export const answeredMax = 4

/**
 * Adds a timeout to a resolver, and pauses it for a while when it fails for several names in a row. `onBug` gets what the
 * resolver throws in a call that no request waits for.
 */
export function guarded(
  resolver: Resolver,
  options: GuardOptions,
  clock: Clock,
  onBug: (error: unknown) => void,
): Resolver {
  return new GuardedResolver(resolver, options, clock, onBug)
}

/**
 * Strangers choose names that a resolver is slow about, or fails for. So a failure counts only where no other name was answered
 * meanwhile, and before the resolver is paused for all names it is tried with names that it answered before. After a pause these
 * and the requested name are tried: any answer ends it.
 */
class GuardedResolver implements Resolver {
  readonly label: Resolver['label']
  readonly remote: boolean
  readonly #rest: Backoff
  readonly #answered = new BoundedMap<string, Name>(answeredMax)
  #failedLast = ''
  #trying: Promise<void> | undefined

  constructor(
    private readonly resolver: Resolver,
    private readonly options: GuardOptions,
    private readonly clock: Clock,
    private readonly onBug: (error: unknown) => void,
  ) {
    this.label = resolver.label
    this.remote = resolver.remote
    this.#rest = new Backoff(options, clock)
  }

  async resolve(name: Name, asking: ResolveContext): Promise<ResolverVerdict> {
    // It says nothing about the resolver.
    if (this.resolver.accepts?.(name) === false) return 'absent'
    const rest = this.#rest
    if (rest.isDue && rest.isOn) return this.#resting()
    // One call tries whether the resolver works again; the others are refused meanwhile and need not wait.
    if (rest.isDue) {
      rest.hold(this.options.timeoutMs)
      if (this.#answered.size > 0) this.#tryAnswered()
    }
    const begunMs = this.clock.monotonic()
    const verdict = await this.#call(name, asking)
    this.#judge(verdict, name, asking, begunMs)
    return verdict
  }

  #resting(): ResolverVerdict {
    const words = `the ${this.label} resolver gets no requests for a while, after failures`
    return refuse('upstream', 'upstream', words)
  }

  async #call(name: Name, asking: ResolveContext): Promise<ResolverVerdict> {
    const own = new AbortController()
    const leave = (): void => own.abort()
    asking.signal.addEventListener('abort', leave)
    if (asking.signal.aborted) leave()
    const answer = this.resolver.resolve(name, { ...asking, signal: own.signal })
    const late = refuse('late', 'upstream', `the ${this.label} resolver did not answer in time`)
    const verdict = await withinTime(this.clock, this.options.timeoutMs, answer, late)
    if (verdict === late) own.abort()
    asking.signal.removeEventListener('abort', leave)
    return verdict
  }

  #judge(verdict: ResolverVerdict, name: Name, asking: ResolveContext, begunMs: number): void {
    const { basename } = name
    if (isAnswer(verdict)) {
      if (!isRefusal(verdict)) this.#answered.set(name.basename, name)
      this.#well()
      return
    }
    // A failure for a request with a trail may be caused by the trail, so it does not count.
    if (!isUntrailed(asking) || this.#rest.wasWellSince(begunMs)) return
    // An aborted call does not count against the resolver, and neither does the same name failing repeatedly.
    const isRepeated = basename === this.#failedLast && !this.#rest.isDue
    if (asking.signal.aborted || isRepeated) return
    this.#failedLast = basename
    if (this.#rest.isLast && this.#answered.size > 0) this.#tryAnswered()
    else this.#rest.failed()
  }

  #well(): void {
    this.#rest.well()
    this.#failedLast = ''
  }

  #tryAnswered(): void {
    this.#trying ??= this.#tryAll()
      .catch((error: unknown) => {
        this.#rest.failed()
        this.onBug(error)
      })
      .finally(() => {
        this.#trying = undefined
      })
  }

  async #tryAll(): Promise<void> {
    const asking = { hops: 0, via: [], signal: new AbortController().signal }
    const tried = [...this.#answered.values()].map(async (name) => {
      const isWell = isAnswer(await this.#call(name, asking))
      if (isWell) this.#well()
      return { name, isWell }
    })
    const all = await Promise.all(tried)
    // A name that alone fails is none to try the resolver with.
    if (!all.some(({ isWell }) => isWell)) this.#rest.failed()
    else for (const { name, isWell } of all) if (!isWell) this.#answered.delete(name.basename)
  }
}

/** A malformed record counts, too: otherwise the owner of one name could pause the resolver for all names. */
function isAnswer(verdict: ResolverVerdict): boolean {
  return !isRefusal(verdict) || verdict.refused === 'forged'
}
