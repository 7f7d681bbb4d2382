/** A clock that is wrong for a while, or at one of several machines, must confirm no time that has not come. */
import t from 'tap'
import { ConfirmedTime } from '../../src/actor/confirmed-time.js'
import { below } from '../property.js'

const [minuteMs, hourMs] = [60_000, 3600_000]
const dayStartMs = Date.UTC(2026, 0, 1)

/** A machine: `aheadMs` is the error of its clock. */
function machine(aheadMs = 0): {
  aheadMs: number
  passedMs: number
  now(): number
  monotonic(): number
  readonly trueMs: number
} {
  return {
    aheadMs,
    passedMs: 0,
    get trueMs() {
      return dayStartMs + this.passedMs
    },
    now() {
      return this.trueMs + this.aheadMs
    },
    monotonic() {
      // As the clock of the machine: with parts of a millisecond.
      return this.passedMs + 0.25
    },
  }
}

t.test('nothing is confirmed before the clock ran evenly for ten minutes', (t) => {
  const clock = machine()
  const time = new ConfirmedTime(clock)
  for (; clock.passedMs < 10 * minuteMs; clock.passedMs += minuteMs)
    t.equal(time.now(), Number.NEGATIVE_INFINITY)
  t.equal(time.now(), clock.trueMs)
  t.end()
})

t.test('a clock that is ahead at a start and set right a minute later', (t) => {
  const clock = machine(25 * hourMs)
  const time = new ConfirmedTime(clock)
  for (let minute = 0; minute < 30; minute += 1) {
    clock.passedMs += minuteMs
    if (minute === 1) clock.aheadMs = 0
    t.ok(time.now() <= clock.trueMs, `minute ${minute}`)
  }
  t.equal(time.now(), clock.trueMs)
  t.end()
})

t.test('how long ago something began is known at once, and not where the clock was set since', (t) => {
  const clock = machine(25 * hourMs)
  const time = new ConfirmedTime(clock)
  clock.passedMs += 1000
  const begunMs = clock.now()
  clock.passedMs += 5000
  t.equal(time.now(begunMs), begunMs + 5000)
  t.equal(time.now(begunMs - 3 * hourMs), Number.NEGATIVE_INFINITY, 'what began before this process')
  clock.aheadMs += hourMs
  t.equal(time.now(begunMs), Number.NEGATIVE_INFINITY)
  clock.aheadMs = 0
  t.ok(time.now(begunMs) < begunMs)
  t.end()
})

t.test('a clock that is set ahead while the program runs, and back', (t) => {
  const clock = machine()
  const time = new ConfirmedTime(clock)
  clock.passedMs += 20 * minuteMs
  t.equal(time.now(), clock.trueMs)
  clock.aheadMs = 3 * hourMs
  for (let minute = 0; minute < 9; minute += 1) {
    clock.passedMs += minuteMs
    t.equal(time.now(), clock.trueMs, 'it goes on as before')
  }
  clock.aheadMs = 0
  t.equal(time.now(), clock.trueMs)
  // A machine that was suspended: its clock is right, and far ahead of the time that it ran.
  clock.aheadMs = hourMs
  time.now()
  clock.passedMs += 10 * minuteMs
  t.equal(time.now(), clock.now())
  t.end()
})

t.test('one of two machines with one store is ahead for ever, or the clock of the store is', async (t) => {
  for (const [ownMs, storeMs] of [
    [3 * hourMs, 0],
    [0, 3 * hourMs],
  ] as const) {
    const clock = machine(ownMs)
    const time = new ConfirmedTime(clock, async () => clock.trueMs + storeMs)
    clock.passedMs += 20 * minuteMs
    t.equal(time.now(), Number.NEGATIVE_INFINITY, 'the store was not read yet')
    for (let minute = 0; minute < 30; minute += 1) {
      clock.passedMs += minuteMs
      await time.refresh()
      t.ok(time.now() <= clock.trueMs)
    }
    t.equal(time.now(), clock.trueMs)
  }
})

t.test('a thread that is held up while it reads the other clock is not behind', async (t) => {
  const clock = machine()
  const time = new ConfirmedTime(clock, async () => {
    const readMs = clock.trueMs
    clock.passedMs += 500
    return readMs
  })
  await time.refresh()
  const begunMs = clock.now()
  clock.passedMs += 1000
  t.equal(time.now(begunMs), clock.trueMs)
})

t.test('whatever is set for less than ten minutes', async (t) => {
  for (let round = 0; round < 200; round += 1) {
    const clock = machine(below(2) * hourMs)
    const time = new ConfirmedTime(clock)
    let wrongForMs = 0
    for (let step = 0; step < 200; step += 1) {
      const stepMs = 1 + below(2 * minuteMs)
      clock.passedMs += stepMs
      wrongForMs = clock.aheadMs > 0 ? wrongForMs + stepMs : 0
      if (wrongForMs > 7 * minuteMs) clock.aheadMs = 0
      else if (clock.aheadMs === 0 && below(10) === 0) clock.aheadMs = 10_000 + below(48 * hourMs)
      else if (below(10) === 0) clock.aheadMs = -below(hourMs)
      if (time.now() > clock.trueMs) t.fail(`${time.now() - clock.trueMs} ms too early`)
    }
  }
})
