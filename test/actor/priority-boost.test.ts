import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { PriorityBoost } from '../../src/actor/priority-boost.js'

/** One thread that is wanted or not, and has so many milliseconds of the processor between two looks. */
function machine(refused?: string) {
  const changes: string[] = []
  let ranNs = 0
  let isWanted = false
  const boost = new PriorityBoost([{ thread: 7, isWanted: () => isWanted, whenWanted: () => undefined }], {
    ranNs: () => ranNs,
    put: (thread, policy) => {
      changes.push(`${thread} ${policy}`)
      return refused
    },
  })
  const passes = (looks: number, ranMs: number, wanted = true): void => {
    isWanted = wanted
    for (let look = 0; look < looks; look += 1) {
      ranNs += ranMs * 1e6
      boost.look()
    }
  }
  return { changes, passes }
}

const [share, back] = ['7 other', '7 idle']

t.test(
  'a thread that is wanted and gets next to nothing has a share for a while, again and again',
  async (t) => {
    const { changes, passes } = machine()
    passes(1, 0.3)
    t.same(changes, [], 'the first look has nothing to compare with')
    passes(1, 0.3)
    t.same(changes, [share])
    passes(4, 10)
    t.same(changes, [share])
    passes(1, 10)
    t.same(changes, [share, back])
    passes(2, 0.3)
    t.same(changes, [share, back, share])
  },
)

t.test('a thread that is not wanted, or gets enough time, keeps its policy', async (t) => {
  const { changes, passes } = machine()
  passes(10, 0, false)
  passes(10, 50)
  passes(1, 0, false)
  passes(1, 0)
  passes(1, 0, false)
  t.same(changes, [])
})

t.test('where the policy cannot be raised it is tried again, and never lowered', async (t) => {
  const { changes, passes } = machine('EPERM')
  passes(20, 0)
  t.notOk(changes.includes(back))
})

t.test('nobody looks while nobody waits', async (t) => {
  let begin: (() => void) | undefined
  let isWanted = false
  let looks = 0
  const hand = {
    thread: 7,
    isWanted: () => {
      looks += 1
      return isWanted
    },
    whenWanted: (act: () => void) => {
      begin = act
    },
  }
  const timers = new Set<() => void>()
  const every = (_: number, act: () => void) => {
    timers.add(act)
    return { cancel: () => timers.delete(act) }
  }
  const boost = new PriorityBoost([hand], { ranNs: () => undefined, put: () => undefined })
  const keeping = boost.keep({ ...systemClock, every })
  t.equal(timers.size, 0)
  isWanted = true
  begin?.()
  begin?.()
  t.equal(timers.size, 1)
  isWanted = false
  begin = undefined
  for (let turn = 0; turn < 30; turn += 1) for (const act of timers) act()
  t.equal(timers.size, 0)
  t.ok(looks <= 10)
  t.not(begin, undefined, 'it hears of the next who waits')
  keeping.cancel()
  ;(begin as (() => void) | undefined)?.()
  t.equal(timers.size, 0)
})
