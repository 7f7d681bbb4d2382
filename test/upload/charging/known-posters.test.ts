import t from 'tap'
import { openEnvironment } from '../../../src/store/lmdb.js'
import { KnownPosters } from '../../../src/upload/charging/known-posters.js'

const dayMs = 86_400_000

t.test('eight networks of a wallet are remembered, for some weeks', async (t) => {
  const environment = openEnvironment(t.testdir())
  t.teardown(() => environment.close())
  const posters = new KnownPosters(environment)
  const [wallet, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const keep = (of: Buffer, address: string, day: number): void =>
    environment.write(() => posters.record(of, address, day * dayMs))
  keep(other, '20.0.0.1', 0)
  for (let at = 0; at < 8; at += 1) keep(wallet, `10.${at}.0.1`, at)
  t.ok(posters.has(wallet, '10.0.0.9', 8 * dayMs), 'any address of the network')
  t.notOk(posters.has(wallet, '10.0.1.1', 8 * dayMs), 'and no other of the provider')
  t.notOk(posters.has(wallet, '20.0.0.1', 8 * dayMs), 'of this wallet')
  // Used again, so that it is not the oldest.
  keep(wallet, '10.0.0.2', 9)
  keep(wallet, '2001:db8:1::1', 9)
  t.ok(posters.has(wallet, '2001:db8:1:ffff::1', 10 * dayMs))
  t.ok(posters.has(wallet, '10.0.0.1', 10 * dayMs))
  t.notOk(posters.has(wallet, '10.1.0.1', 10 * dayMs))
  t.ok(posters.has(other, '20.0.0.1', 90 * dayMs))
  t.notOk(posters.has(other, '20.0.0.1', 91 * dayMs), 'that was long ago')
  t.equal(environment.table('posters').count(), 9)
})

t.test('items from many networks push out no network with items on several days', async (t) => {
  const environment = openEnvironment(t.testdir())
  t.teardown(() => environment.close())
  const posters = new KnownPosters(environment)
  const wallet = Buffer.alloc(32, 1)
  const keep = (address: string, day: number): void =>
    environment.write(() => posters.record(wallet, address, day * dayMs))
  // A release before has written the day alone.
  environment.write(() => {
    posters.record(wallet, '10.9.0.1', 0)
    const [entry] = environment.table('posters').from(undefined, 1)
    if (entry !== undefined) environment.table('posters').put(entry.key, entry.value.subarray(0, 4))
  })
  for (const day of [1, 2, 3]) for (let at = 0; at < 7; at += 1) keep(`10.${at}.0.1`, day)
  t.ok(posters.has(wallet, '10.9.0.1', 3 * dayMs))
  for (let stranger = 0; stranger < 40; stranger += 1) keep(`203.0.${stranger}.1`, 3)
  for (const day of [4, 5]) keep('203.0.39.1', day)
  for (let at = 0; at < 7; at += 1) t.ok(posters.has(wallet, `10.${at}.0.1`, 5 * dayMs), `home ${at}`)
  t.equal(environment.table('posters').count(), 8)
  for (let at = 0; at < 8; at += 1) keep(`198.51.${at}.1`, 94)
  t.ok(posters.has(wallet, '198.51.7.1', 94 * dayMs), 'what is no home any more gives way first')
  t.ok(posters.has(wallet, '198.51.1.1', 94 * dayMs))
})
