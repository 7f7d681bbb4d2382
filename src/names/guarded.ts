import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Asking, Name, Resolver, Verdict } from './protocol.js'

export interface GuardOptions {
  /** For one answer. */
  readonly timeoutMs: number
  /** After so many failures in a row the resolver rests. */
  readonly failuresMax: number
  readonly restMs: number
  /** Each further failure doubles the rest, up to this. */
  readonly restMaxMs: number
}

/** A resolver that keeps nobody waiting for long, and is left alone for a while when it fails for several names in a row. */
export function guarded(resolver: Resolver, options: GuardOptions, clock: Clock): Resolver {
  const resting = refuse('upstream', 'upstream', `the ${resolver.label} resolver rests after failures`)
  const late = refuse('late', 'upstream', `the ${resolver.label} resolver did not answer in time`)
  let failures = 0
  let failedLast = ''
  let restsUntil = 0

  const judge = (verdict: Verdict, { basename }: Name, asking: Asking): void => {
    // Nonsense about one name is an answer all the same: its holder must not shut the resolver for everybody.
    if (!isRefusal(verdict) || verdict.refused === 'forged') {
      failures = 0
      failedLast = ''
      return
    }
    // Whoever asked has left: that says nothing about the resolver. Nor does one name that is slow again and again.
    if (asking.signal.aborted || (basename === failedLast && failures < options.failuresMax)) return
    failedLast = basename
    failures += 1
    const over = failures - options.failuresMax
    if (over >= 0) restsUntil = clock.monotonic() + Math.min(options.restMs * 2 ** over, options.restMaxMs)
  }
  return {
    label: resolver.label,
    remote: resolver.remote,
    async resolve(name: Name, asking: Asking): Promise<Verdict> {
      const isTrial = failures >= options.failuresMax
      if (isTrial && clock.monotonic() < restsUntil) return resting
      // One question tries whether it is well again; the others need not wait for that.
      if (isTrial) restsUntil = clock.monotonic() + options.timeoutMs
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
