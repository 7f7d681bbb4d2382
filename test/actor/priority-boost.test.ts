import t from 'tap'
import { PriorityBoost } from '../../src/actor/priority-boost.js'

/** One thread that is wanted or not, and has so many milliseconds of the processor between two looks. */
function machine(refused?: string) {
  const told: string[] = []
  let ranNs = 0
  let isWanted = false
  const boost = new PriorityBoost([{ thread: 7, isWanted: () => isWanted }], {
    ranNs: () => ranNs,
    put: (thread, policy) => {
      told.push(`${thread} ${policy}`)
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
  return { told, passes }
}

const [share, back] = ['7 other', '7 idle']

t.test(
  'a thread that is wanted and gets next to nothing has a share for a while, again and again',
  async (t) => {
    const { told, passes } = machine()
    passes(1, 0.3)
    t.same(told, [], 'the first look has nothing to compare with')
    passes(1, 0.3)
    t.same(told, [share])
    passes(4, 10)
    t.same(told, [share])
    passes(1, 10)
    t.same(told, [share, back])
    passes(2, 0.3)
    t.same(told, [share, back, share])
  },
)

t.test('a thread that is not wanted, or gets enough time, keeps its policy', async (t) => {
  const { told, passes } = machine()
  passes(10, 0, false)
  passes(10, 50)
  passes(1, 0, false)
  passes(1, 0)
  passes(1, 0, false)
  t.same(told, [])
})

t.test('where the policy cannot be raised it is tried again, and never lowered', async (t) => {
  const { told, passes } = machine('EPERM')
  passes(20, 0)
  t.notOk(told.includes(back))
})
