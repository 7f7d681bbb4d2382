import t from 'tap'
import { pause } from '../../../src/actor/clock.js'
import type { Id } from '../../../src/format/id.js'
import { BackgroundFills } from '../../../src/source/transfer/background-fills.js'
import { someId } from '../rig.js'

t.test('payloads are brought one after the other, each once, and no more than may wait', async (t) => {
  const begun: Id[] = []
  let end: (() => void) | undefined
  const bring = (id: Id): Promise<void> => {
    begun.push(id)
    return new Promise((resolve) => {
      end = resolve
    })
  }
  const fills = new BackgroundFills({ maxBytes: 100, concurrency: 1 }, bring)
  const ids = Array.from({ length: 100 }, someId)
  for (const id of ids) fills.want(id, 100)
  for (const id of ids.slice(1, 5)) fills.want(id, 100)
  fills.want(someId(), 101)
  t.same(begun, ids.slice(0, 1))
  for (let turn = 0; turn < 200; turn += 1) {
    end?.()
    await pause(0)
  }
  t.same(begun, ids.slice(0, 65))
  for (const id of ids.slice(0, 3)) fills.want(id, 1)
  fills.stop()
  end?.()
  await pause(1)
  t.equal(begun.length, 66)
  fills.want(someId(), 1)
  t.equal(begun.length, 66)
})
