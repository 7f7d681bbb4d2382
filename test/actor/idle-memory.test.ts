import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8'
import t from 'tap'
import { collector, IdleMemory } from '../../src/actor/idle-memory.js'

const MiB = 1024 * 1024
const idle = { busyShare: 0, processMs: 0 }
const busy = { busyShare: 0.5, processMs: 0 }

/** What it says in so many quiet turns, in each of which the process took `turnMs` of the processors. */
function quiet(memory: IdleMemory, turns: number, heapBytes: number, turnMs = 0): boolean[] {
  return Array.from({ length: turns }, (_, at) => {
    const isTime = memory.turn({ busyShare: 0, heapBytes, processMs: at * turnMs })
    if (isTime) memory.collected(heapBytes)
    return isTime
  })
}

t.test('memory is given back in three turns once a thread was quiet for a while', async (t) => {
  const answers = quiet(new IdleMemory(8), 30, 20 * MiB)
  t.equal(answers.indexOf(true), 7)
  t.equal(answers.lastIndexOf(true), 9)
})

t.test('work in between begins the quiet time anew', async (t) => {
  const memory = new IdleMemory(8)
  quiet(memory, 7, 20 * MiB)
  t.notOk(memory.turn({ ...busy, heapBytes: 20 * MiB }))
  t.notOk(quiet(memory, 7, 20 * MiB).includes(true))
  t.ok(memory.turn({ ...idle, heapBytes: 20 * MiB }))
})

t.test('work ends a row of collections, which begins anew after it', async (t) => {
  const memory = new IdleMemory(8)
  t.ok(quiet(memory, 8, 20 * MiB).includes(true))
  t.notOk(memory.turn({ ...busy, heapBytes: 20 * MiB }))
  t.notOk(quiet(memory, 7, 20 * MiB).includes(true))
  t.same(quiet(memory, 4, 20 * MiB), [true, true, true, false])
})

t.test(
  'sweeping behind a collection is no work: a row of collections ends, and is not begun again',
  async (t) => {
    const memory = new IdleMemory(8)
    const heapBytes = 20 * MiB
    const answers = Array.from({ length: 60 }, (_, at) => {
      const isTime = memory.turn({ busyShare: at > 7 && at < 11 ? 0.05 : 0, heapBytes, processMs: 0 })
      if (isTime) memory.collected(heapBytes)
      return isTime
    })
    t.equal(answers.filter(Boolean).length, 3)
  },
)

t.test('where a heap grew little, there is nothing to give back', async (t) => {
  const memory = new IdleMemory(8)
  quiet(memory, 10, 20 * MiB)
  t.notOk(quiet(memory, 100, 23 * MiB).includes(true))
  t.ok(quiet(memory, 100, 24 * MiB).includes(true))
})

t.test('pauses of the traffic are no reason to collect again', async (t) => {
  const memory = new IdleMemory(8)
  t.equal(quiet(memory, 30, 20 * MiB).filter(Boolean).length, 3)
  for (let pauses = 0; pauses < 10; pauses += 1) {
    t.notOk(memory.turn({ ...busy, heapBytes: 40 * MiB }))
    t.notOk(quiet(memory, 30, 40 * MiB).includes(true))
  }
  t.notOk(memory.turn({ ...busy, heapBytes: 40 * MiB }))
  const answers = quiet(memory, 100, 40 * MiB)
  t.equal(answers.indexOf(true), 63)
  t.equal(answers.filter(Boolean).length, 3)
})

t.test('where other threads work, a quiet one does not take their processors', async (t) => {
  const memory = new IdleMemory(8)
  t.notOk(quiet(memory, 100, 20 * MiB, 500).includes(true))
  t.notOk(memory.turn({ ...busy, heapBytes: 20 * MiB, processMs: 50_000 }))
  const later = { ...idle, heapBytes: 20 * MiB, processMs: 50_100 }
  const answers = Array.from({ length: 8 }, () => memory.turn(later))
  t.same(answers, [false, false, false, false, false, false, false, true])
})

t.test('a heap with holes shrinks to what is alive', async (t) => {
  const alive: object[] = []
  const collect = collector()
  const before = getHeapStatistics().used_heap_size
  const all = Array.from({ length: 400_000 }, (_, at) => ({ at, text: [at, at + 1, at + 2] }))
  // They are old now: the next collections do not move them by themselves.
  for (let round = 0; round < 2; round += 1) collect()
  for (let at = 0; at < all.length; at += 100) alive.push(all[at] ?? {})
  all.length = 0
  for (let round = 0; round < 3; round += 1) collect()
  const used = getHeapStatistics().used_heap_size
  t.ok(used - before < 4 * MiB, `${used - before} bytes alive`)
  const old = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')
  const holes = (old?.physical_space_size ?? 0) - (old?.space_used_size ?? 0)
  t.ok(holes < MiB, `${holes} bytes of holes`)
  t.equal(alive.length, 4000)
})
