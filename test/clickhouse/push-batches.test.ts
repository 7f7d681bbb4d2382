import t from 'tap'
import type { ChainIndex } from '../../src/catalog/index-reader.js'
import { PushBatches } from '../../src/clickhouse/push-batches.js'
import { openChainHouse } from './house.js'

const limits = { rows: 100_000, bytes: 2 ** 26 }

t.test('a run that ended within a row leaves nothing to the next one', async (t) => {
  const house = await openChainHouse(150)
  t.teardown(() => house.close())
  const { index } = house
  const to = (index.topHeight() ?? 0) - 3
  const heights = { from: index.linkedDown(to, 10_000), to }
  const bytesOf = (batches: PushBatches): Buffer =>
    Buffer.concat([...batches.make(heights)].map(({ bytes }) => bytes))
  let questions = 0
  const failing = new Proxy(index, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        if (name === 'ownerKey' && ++questions === 3) throw new Error('a page is damaged')
        return Reflect.apply(value, target, args)
      }
    },
  }) as ChainIndex
  const batches = new PushBatches(failing, () => 5000, limits)
  t.throws(() => bytesOf(batches), /damaged/)
  t.ok(bytesOf(batches).equals(bytesOf(new PushBatches(index, () => 5000, limits))))
})
