import t from 'tap'
import {
  type Clock,
  endsWithin,
  isWithin,
  LongTimer,
  notBefore,
  pause,
  systemClock,
  type Timer,
} from '../../src/actor/clock.js'
import { eventually } from '../eventually.js'

const yearMs = 365 * 86_400_000

t.test('a delay that no timer can take does not end at once', async (t) => {
  let early = 0
  const note = (): void => {
    early += 1
  }
  const quit = new AbortController()
  const timers = [
    systemClock.after(400 * 86_400_000, note),
    systemClock.after(Number.POSITIVE_INFINITY, note),
    systemClock.after(Number.NaN, note),
    systemClock.every(2 ** 40, note),
    systemClock.every(Number.POSITIVE_INFINITY, note),
  ]
  const pausing = pause(2 ** 31, quit.signal).then(note)
  // Timers are called in the order in which they are due: whatever took 1 ms for one of those comes before this.
  await pause(20)
  t.equal(early, 0)
  for (const timer of timers) timer.cancel()
  quit.abort()
  await pausing
  t.equal(early, 1, 'a pause ends where its signal says so')
})

t.test('it ends when all of its parts are over, and not where it was cancelled on the way', async (t) => {
  const started = systemClock.monotonic()
  const ended: string[] = []
  const cancelled = new LongTimer(30, true, () => ended.push('cancelled'), 7)
  new LongTimer(-1, true, () => ended.push('negative'))
  await new Promise<void>((resolve) => new LongTimer(16, true, resolve, 7))
  t.same(ended, ['negative'])
  cancelled.cancel()
  await new Promise<void>((resolve) => new LongTimer(40, true, resolve, 7))
  t.ok(systemClock.monotonic() - started >= 54, 'no part is left out')
  t.same(ended, ['negative'])
})

t.test('a time that lies far ahead was written before the clock was set back', async (t) => {
  t.ok(isWithin(1000, 500, 501))
  t.notOk(isWithin(1000, 500, 500))
  t.ok(isWithin(1000, 1100, 500), 'a little ahead: another thread looked at the clock later')
  t.notOk(isWithin(1000, 1000 + yearMs, 500))
  t.notOk(isWithin(1000, Number.NEGATIVE_INFINITY, 500))
})

t.test('the order of what is written outlives a clock that is set forward and back', async (t) => {
  let wallMs = 5 * yearMs
  let monotonicMs = 17
  const clock: Clock = { ...systemClock, now: () => wallMs, monotonic: () => monotonicMs }
  const now = notBefore(clock, 0)
  t.equal(now(), 5 * yearMs)
  wallMs -= 400 * 86_400_000
  t.equal(now(), 5 * yearMs)
  monotonicMs += 1500.5
  t.equal(now(), 5 * yearMs + 1500, 'it goes on with the time that passes')
  wallMs = 6 * yearMs
  t.equal(now(), 6 * yearMs)
  const later = notBefore(clock, 7 * yearMs)
  t.equal(later(), 7 * yearMs, 'after a restart it goes on from what is on disk')
})

t.test('work that does not end is waited for no longer than asked', async (t) => {
  t.equal(await endsWithin(Promise.resolve(), 60_000), true)
  t.equal(await endsWithin(Promise.reject(new Error('ended badly')), 60_000), true)
  t.equal(await endsWithin(new Promise(() => undefined), 5), false)
})

t.test(
  'timers of quarters of a second fire together, in their periods, until they are cancelled',
  async (t) => {
    const fired: { readonly name: string; readonly atMs: number; readonly turn: number }[] = []
    /** Of the loop: what fires together has the same one. */
    let turn = 0
    const timers: Timer[] = []
    const beganMs = systemClock.monotonic()
    const add = (name: string, ms: number): void => {
      const note = (): void => {
        fired.push({ name, atMs: systemClock.monotonic() - beganMs, turn })
        setImmediate(() => {
          turn += 1
        })
      }
      timers.push(systemClock.every(ms, note))
    }
    add('a', 250)
    await pause(70)
    add('b', 250)
    await pause(90)
    add('c', 500)
    const of = (name: string) => fired.filter((one) => one.name === name)
    const times = (name: string): number[] => of(name).map(({ atMs }) => atMs)
    const turns = (name: string): number[] => of(name).map((one) => one.turn)
    await eventually('three turns of the slowest timer', () => times('c').length >= 3)
    for (const timer of timers) timer.cancel()
    const count = fired.length
    const periods = (systemClock.monotonic() - beganMs) / 250
    // Periods that were missed on a busy machine are left out.
    t.ok(times('a').length >= 3 && times('a').length <= periods + 1, `a: ${times('a').join(' ')}`)
    t.ok((times('a')[0] ?? 0) >= 249, 'no period is shorter')
    t.ok(times('c').length <= periods / 2 + 1, `c: ${times('c').join(' ')}`)
    t.strictSame(
      turns('b').filter((one) => !turns('a').includes(one)),
      [],
      `b: ${times('b').join(' ')}`,
    )
    await pause(600)
    t.equal(fired.length, count)
  },
)

t.test('a timer that cancels itself fires no more', async (t) => {
  let fired = 0
  const timer = systemClock.every(250, () => {
    fired += 1
    timer.cancel()
  })
  let others = 0
  const other = systemClock.every(250, () => {
    others += 1
  })
  await eventually('four turns of another timer', () => others >= 4)
  other.cancel()
  t.equal(fired, 1)
})

t.test('however many timers of quarters of a second there are, a turn has one timer of Node', async (t) => {
  const real = globalThis.setTimeout
  let made = 0
  const counting = (...given: Parameters<typeof real>): NodeJS.Timeout => {
    made += 1
    return real(...given)
  }
  globalThis.setTimeout = Object.assign(counting, real)
  t.teardown(() => {
    globalThis.setTimeout = real
  })
  let fired = 0
  const timers = Array.from({ length: 50 }, () =>
    systemClock.every(250, () => {
      fired += 1
    }),
  )
  const before = made
  // Not by `eventually`, whose pauses are timers of Node, too.
  while (fired < 200) await new Promise((resolve) => real(resolve, 20))
  for (const timer of timers) timer.cancel()
  t.ok(made - before <= 10, `${made - before} timers of Node`)
})

t.test('what one timer throws keeps no other from its turn', async (t) => {
  const thrown: unknown[] = []
  const hear = (error: unknown): void => void thrown.push(error)
  const others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException').on('uncaughtException', hear)
  let fired = 0
  const timers = [
    systemClock.every(250, () => {
      throw new Error('a bug')
    }),
    systemClock.every(250, () => {
      fired += 1
    }),
  ]
  await eventually('two turns of both', () => fired >= 2 && thrown.length >= 2)
  for (const timer of timers) timer.cancel()
  await pause(50)
  process.removeAllListeners('uncaughtException')
  for (const other of others) process.on('uncaughtException', other)
  t.ok(fired >= 2)
  t.ok(thrown.length >= 2)
})
