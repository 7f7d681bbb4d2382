import { Backoff, type BackoffOptions } from '../actor/backoff.js'
import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import {
  isUntrailed,
  type Name,
  type ResolveContext,
  type Resolver,
  type ResolverVerdict,
} from './protocol.js'

export interface GuardOptions extends BackoffOptions {
  /** For one answer. */
  readonly timeoutMs: number
}

/** A resolver that keeps nobody waiting for long, and is left alone for a while when it fails for several names in a row. */
export function guarded(resolver: Resolver, options: GuardOptions, clock: Clock): Resolver {
  const resting = refuse('upstream', 'upstream', `the ${resolver.label} resolver rests after failures`)
  const late = refuse('late', 'upstream', `the ${resolver.label} resolver did not answer in time`)
  const rest = new Backoff(options, clock)
  let failedLast = ''

  const judge = (verdict: ResolverVerdict, { basename }: Name, asking: ResolveContext): void => {
    // Nonsense about one name is an answer all the same: its holder must not shut the resolver for everybody.
    if (!isRefusal(verdict) || verdict.refused === 'forged') {
      rest.well()
      failedLast = ''
      return
    }
    // What becomes of a question with a client's trail may be the trail's fault.
    if (!isUntrailed(asking)) return
    // Whoever asked has left: that says nothing about the resolver. Nor does one name that is slow again and again.
    if (asking.signal.aborted || (basename === failedLast && !rest.isDue)) return
    failedLast = basename
    rest.failed()
  }
  return {
    label: resolver.label,
    remote: resolver.remote,
    async resolve(name: Name, asking: ResolveContext): Promise<ResolverVerdict> {
      if (rest.isDue && rest.isOn) return resting
      // One question tries whether it is well again; the others need not wait for that.
      if (rest.isDue) rest.hold(options.timeoutMs)
      const own = new AbortController()
      const leave = (): void => own.abort()
      asking.signal.addEventListener('abort', leave)
      if (asking.signal.aborted) leave()
      let stop = (): void => undefined
      const patience = new Promise<Refusal>((resolve) => {
        const timer = clock.after(options.timeoutMs, () => {
          resolve(late)
          own.abort()
        })
        stop = () => timer.cancel()
      })
      const answer = resolver.resolve(name, { ...asking, signal: own.signal })
      const verdict = await Promise.race([answer, patience])
      stop()
      asking.signal.removeEventListener('abort', leave)
      judge(verdict, name, asking)
      return verdict
    },
  }
}
