import t from 'tap'
import { openEnvironment } from '../../../src/store/lmdb.js'
import { KnownPosters } from '../../../src/upload/selling/known-posters.js'

const dayMs = 86_400_000

t.test('the last eight networks of a wallet are remembered, for some weeks', async (t) => {
  const environment = openEnvironment(t.testdir())
  t.teardown(() => environment.close())
  const posters = new KnownPosters(environment)
  const [wallet, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const keep = (of: Buffer, address: string, day: number): void =>
    environment.write(() => posters.keep(of, address, day * dayMs))
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
