import { deepEqual } from 'node:assert/strict'
import t from 'tap'
import { idOfBytes } from '../../src/format/id.js'
import { type Waiting, WaitingList } from '../../src/ingest/waiting.js'
import { fc } from '../property.js'

const idOf = (number: number) => idOfBytes(Buffer.alloc(32, number))

/** The same in one list, which is gone through for every question. */
class PlainList {
  all: Waiting[] = []
  #turn = 0

  constructor(private readonly max: number) {}

  put(id: Waiting['id'], priority: number, dueMs: number): boolean {
    const before = this.all.find((one) => one.id === id)
    if (before === undefined && this.all.length >= this.max) {
      const least = Math.min(...this.all.map((one) => one.priority))
      if (least >= priority) return false
      this.all.splice(
        this.all.findIndex((one) => one.priority === least),
        1,
      )
    }
    this.all = this.all.filter((one) => one !== before)
    this.#turn += 1
    this.all.push({ id, hints: {}, priority, attempts: 0, dueMs, turn: before?.turn ?? this.#turn })
    return true
  }

  next(nowMs: number): Waiting | undefined {
    const rank = ({ priority, attempts, turn }: Waiting): number =>
      (2 - priority) * 1e9 + attempts * 1e6 + turn
    return this.all.filter(({ dueMs }) => dueMs <= nowMs).sort((one, other) => rank(one) - rank(other))[0]
  }
}

const step = fc.oneof(
  fc.record({ put: fc.integer({ min: 0, max: 12 }), priority: fc.integer({ min: 0, max: 2 }) }),
  fc.record({ look: fc.constantFrom<'done' | 'again' | 'replaced'>('done', 'again', 'replaced') }),
  fc.record({ passMs: fc.integer({ min: 1, max: 20 }) }),
)

t.test('what is looked at next is what going through the whole list would have found', async (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const list = new WaitingList(8)
      const plain = new PlainList(8)
      let nowMs = 0
      const put = (id: Waiting['id'], priority: number): void => {
        const taken = list.put({ id, hints: {}, priority, dueMs: nowMs })
        deepEqual(taken, plain.put(id, priority, nowMs))
      }
      for (const one of steps) {
        if ('passMs' in one) nowMs += one.passMs
        else if ('put' in one) put(idOf(one.put), one.priority)
        else {
          const [found, wanted] = [list.next(nowMs), plain.next(nowMs)]
          deepEqual(found, wanted)
          if (found === undefined || wanted === undefined) continue
          if (one.look === 'replaced') put(found.id, found.priority)
          else if (one.look === 'done') {
            list.remove(found)
            plain.all = plain.all.filter((each) => each !== wanted)
          } else {
            const later = { ...wanted, attempts: wanted.attempts + 1, dueMs: nowMs + 10 }
            list.again(found, later.dueMs)
            plain.all[plain.all.indexOf(wanted)] = later
          }
        }
        deepEqual(list.size, plain.all.length)
      }
      // All that is left is found in the end.
      const left = plain.all.length
      for (let count = 0; count < left; count += 1) {
        const [found, wanted] = [list.next(1e9), plain.next(1e9)]
        deepEqual(found, wanted)
        if (found !== undefined) list.remove(found)
        plain.all = plain.all.filter((each) => each !== wanted)
      }
      deepEqual([list.size, list.next(1e9), list.firstDueMs], [0, undefined, undefined])
    }),
  )
  t.pass()
})

t.test('repeated updates of the same ids take no more memory', async (t) => {
  const list = new WaitingList(4)
  for (let round = 0; round < 50_000; round += 1) {
    list.put({ id: idOf(round % 4), hints: {}, priority: 1, dueMs: 0 })
  }
  t.equal(list.size, 4)
  t.ok(list.heldInAll <= 4 + 1024 + 1)
})
