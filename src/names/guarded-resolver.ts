import { Backoff, type BackoffOptions } from '../actor/backoff.js'
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
  /** For one answer. */
  readonly timeoutMs: number
}

/** Adds a timeout to a resolver, and pauses it for a while when it fails for several names in a row. */
export function guarded(resolver: Resolver, options: GuardOptions, clock: Clock): Resolver {
  const resting = refuse(
    'upstream',
    'upstream',
    `the ${resolver.label} resolver gets no requests for a while, after failures`,
  )
  const late = refuse('late', 'upstream', `the ${resolver.label} resolver did not answer in time`)
  const rest = new Backoff(options, clock)
  let failedLast = ''

  const judge = (verdict: ResolverVerdict, { basename }: Name, asking: ResolveContext): void => {
    // A malformed record still counts as an answer: otherwise the owner of one name could pause the resolver for all
    // names.
    if (!isRefusal(verdict) || verdict.refused === 'forged') {
      rest.well()
      failedLast = ''
      return
    }
    // A failure for a request with a trail may be caused by the trail, so it does not count.
    if (!isUntrailed(asking)) return
    // An aborted call does not count against the resolver, and neither does the same name failing repeatedly.
    if (asking.signal.aborted || (basename === failedLast && !rest.isDue)) return
    failedLast = basename
    rest.failed()
  }
  return {
    label: resolver.label,
    remote: resolver.remote,
    async resolve(name: Name, asking: ResolveContext): Promise<ResolverVerdict> {
      if (rest.isDue && rest.isOn) return resting
      // One call tries whether the resolver works again; the others are refused meanwhile and need not wait.
      if (rest.isDue) rest.hold(options.timeoutMs)
      const own = new AbortController()
      const leave = (): void => own.abort()
      asking.signal.addEventListener('abort', leave)
      if (asking.signal.aborted) leave()
      const answer = resolver.resolve(name, { ...asking, signal: own.signal })
      const verdict = await withinTime(clock, options.timeoutMs, answer, late)
      if (verdict === late) own.abort()
      asking.signal.removeEventListener('abort', leave)
      judge(verdict, name, asking)
      return verdict
    },
  }
}
