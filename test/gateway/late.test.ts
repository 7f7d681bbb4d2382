import t from 'tap'
import { late } from '../../src/gateway/late.js'
import type { Route } from '../../src/gateway/parts.js'

type Asked = Parameters<Route['handle']>
const asked = (path: string): Asked => [{ path }, {}, ''] as unknown as Asked

t.test('a handler is loaded at the first request, once, and answers all that came meanwhile', async (t) => {
  const told: string[] = []
  let loads = 0
  const handle = late(async () => {
    loads += 1
    return ({ path }) => void told.push(path)
  })
  t.equal(loads, 0, 'not before somebody asks')
  await Promise.all([handle(...asked('/a')), handle(...asked('/b'))])
  t.equal(loads, 1)
  t.equal(handle(...asked('/c')), undefined, 'then it answers on the spot')
  t.strictSame(told, ['/a', '/b', '/c'])
  t.equal(loads, 1)
})

t.test('a load that fails fails those who wait for it, and is tried again for the next', async (t) => {
  let loads = 0
  const handle = late(async () => {
    loads += 1
    if (loads === 1) throw new Error('no such file')
    return () => undefined
  })
  await t.rejects(Promise.resolve(handle(...asked('/a'))), /no such file/)
  await t.resolves(Promise.resolve(handle(...asked('/b'))))
  t.equal(loads, 2)
})
