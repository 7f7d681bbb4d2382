import { randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { someId } from '../source/rig.js'
import { caller } from './caller.js'
import { type Stage, stage } from './rig.js'

/** Each look at it is a second later. */
function ticking(): typeof systemClock {
  let ms = 0
  return {
    ...systemClock,
    monotonic() {
      ms += 1000
      return ms
    },
  }
}

/** Answers counted by the histogram of durations, seconds of all of them, and answers of less than a second. */
function durations({ meters }: Stage): { count: number; seconds: number; short: number } {
  const of = (ending: string): number => {
    const series = new RegExp(`^http_request_duration_seconds_${ending} (\\S+)$`, 'gm')
    return [...meters.text().matchAll(series)].reduce((sum, [, value]) => sum + Number(value), 0)
  }
  return {
    count: of('count\\{.*\\}'),
    seconds: of('sum\\{.*\\}'),
    short: of('bucket\\{.*le="0.5"\\}'),
  }
}

t.test('each of equal requests is counted with the time that it took', async (t) => {
  const on = await stage({ parts: { clock: ticking() } })
  t.teardown(() => on.close())
  const id = someId()
  await on.keep(id, randomBytes(40_000))
  // The server repeats by the time of the system, and this clock is another.
  const ask = caller(t, { ...on, url: on.stepwiseUrl })
  const before = durations(on).count
  for (let turn = 0; turn < 300; turn += 1) t.equal((await ask(`/${id}`)).status, 200)
  const { count, seconds, short } = durations(on)
  t.equal(count - before, 300)
  t.ok(seconds >= count, `${seconds} s`)
  t.equal(short, 0)
})
