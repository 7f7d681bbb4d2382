/** When a certificate is renewed, and how failures are spread. */
import t from 'tap'
import { Backoff } from '../../src/actor/backoff.js'
import type { CheckedPair } from '../../src/certificates/check.js'
import { isDue, Renewal } from '../../src/certificates/renewal.js'
import { HandClock } from '../names/hand-clock.js'

const dayMs = 86_400_000
const names = ['a.example', '*.a.example']

function pair(fromMs: number, days: number, of: readonly string[] = names): CheckedPair {
  return { names: of, cert: '', key: '', issuer: 'x', notBeforeMs: fromMs, notAfterMs: fromMs + days * dayMs }
}

t.test('it is due with a third of its lifetime left, or without a name', async (t) => {
  t.equal(isDue(undefined, names, 0), true)
  t.equal(isDue(pair(0, 90), names, 60 * dayMs - 1), false)
  t.equal(isDue(pair(0, 90), names, 60 * dayMs), true)
  t.equal(isDue(pair(0, 90, ['a.example']), names, 0), true)
  t.equal(isDue(pair(0, 6), names, 3 * dayMs), false, 'short-lived ones in their own measure')
})

t.test('one attempt at a time, and pauses after failures that grow', async (t) => {
  const clock = new HandClock()
  let current: CheckedPair | undefined
  let end: ((error?: Error) => void) | undefined
  let given: AbortSignal | undefined
  const attempts: number[] = []
  const faults: unknown[] = []
  const renewal = new Renewal({
    names,
    current: () => current,
    issue: (signal) => {
      given = signal
      attempts.push(Math.round(clock.monotonic() / 1000))
      return new Promise((resolve, reject) => {
        end = (error) => (error === undefined ? resolve() : reject(error))
      })
    },
    backoff: new Backoff({ failuresMax: 1, restMs: 300_000, restMaxMs: 600_000 }, clock),
    onFailure: (error) => faults.push(error),
    clock,
  })
  const begun = clock.monotonic()
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  renewal.start()
  await clock.turn(120_000)
  t.equal(attempts.length, 1, 'an attempt that runs is alone')
  for (const [at, pauseMs] of [300_000, 600_000, 600_000].entries()) {
    end?.(new Error('refused'))
    await settled()
    t.equal(faults.length, at + 1)
    await clock.turn(pauseMs - 60_000)
    t.equal(attempts.length, at + 1, 'during the pause')
    await clock.turn(120_000)
    t.equal(attempts.length, at + 2)
  }
  current = pair(clock.now(), 90)
  end?.()
  await settled()
  await clock.turn(600_000)
  t.equal(attempts.length, 4, 'not due')
  t.ok(clock.monotonic() > begun)
  let isStopped = false
  current = undefined
  await clock.turn(60_000)
  const stopping = renewal.stop().then(() => {
    isStopped = true
  })
  await settled()
  t.equal(isStopped, false, 'a stop waits for the attempt')
  t.equal(given?.aborted, true, 'which is told')
  await stopping
  t.ok(true, 'and waits for a second only')
})
