import t from 'tap'
import { IdleMemory } from '../../src/actor/idle-memory.js'

const MiB = 1024 * 1024

/** What it says in so many quiet turns. */
function quiet(memory: IdleMemory, turns: number, heapBytes: number): boolean[] {
  return Array.from({ length: turns }, () => {
    const isTime = memory.turn(0, heapBytes)
    if (isTime) memory.collected(heapBytes)
    return isTime
  })
}

t.test('memory is given back in three turns once a thread was quiet for a while', async (t) => {
  const said = quiet(new IdleMemory(), 30, 20 * MiB)
  t.equal(said.indexOf(true), 7)
  t.equal(said.lastIndexOf(true), 9)
})

t.test('work in between begins the quiet time anew', async (t) => {
  const memory = new IdleMemory()
  quiet(memory, 7, 20 * MiB)
  t.notOk(memory.turn(0.5, 20 * MiB))
  t.notOk(quiet(memory, 7, 20 * MiB).includes(true))
  t.ok(memory.turn(0, 20 * MiB))
})

t.test('where a heap grew little, there is nothing to give back', async (t) => {
  const memory = new IdleMemory()
  quiet(memory, 10, 20 * MiB)
  t.notOk(quiet(memory, 100, 23 * MiB).includes(true))
  t.ok(quiet(memory, 100, 24 * MiB).includes(true))
})
