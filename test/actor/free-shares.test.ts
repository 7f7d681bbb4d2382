import t from 'tap'
import { FreeShares } from '../../src/actor/free-shares.js'

/** How many places a client gets where it asks for all. */
function most(shares: FreeShares, client: string): (() => void)[] {
  const leaves: (() => void)[] = []
  for (let leave = shares.take(client); typeof leave !== 'string'; leave = shares.take(client))
    leaves.push(leave)
  return leaves
}

t.test('one client leaves half, and each newcomer finds a place', async (t) => {
  const shares = new FreeShares(512)
  const first = most(shares, 'a')
  t.equal(first.length, 256)
  t.equal(most(shares, 'b').length, 16)
  for (let at = 0; at < 50; at += 1)
    t.type(shares.take(`client ${at}`), 'function', 'however many came before')
  t.equal(shares.take('a'), 'client')
  for (const leave of first) {
    leave()
    leave()
  }
  t.ok(most(shares, 'c').length > 100, 'what is given back is free, once')
})

t.test('the ranges of one network have half of the places together', async (t) => {
  const shares = new FreeShares(512)
  for (let range = 0; range < 300; range += 1) most(shares, `2001:db8:1:${range.toString(16)}::`)
  for (let last = 0; last < 200; last += 1) most(shares, `203.0.113.${last}`)
  for (let at = 0; at < 50; at += 1) t.type(shares.take(`198.51.${at}.1`), 'function', 'a newcomer')
})

t.test('the networks of one provider have three quarters of the places together', async (t) => {
  for (const network of [
    (n: number) => `2001:db8:${n.toString(16)}::`,
    (n: number) => `45.33.${n % 256}.1`,
  ]) {
    const shares = new FreeShares(512)
    for (let at = 0; at < 1000; at += 1) most(shares, network(at))
    for (let at = 0; at < 50; at += 1) t.type(shares.take(`198.${at}.100.1`), 'function', 'a newcomer')
  }
})

t.test('the last place is taken', async (t) => {
  const shares = new FreeShares(2)
  const leave = shares.take('a')
  t.equal(shares.take('a'), 'client')
  t.type(shares.take('b'), 'function')
  t.equal(shares.take('c'), 'all')
  if (typeof leave === 'function') leave()
  t.type(shares.take('c'), 'function')
  t.type(new FreeShares(1).take('a'), 'function')
})

t.test('one client has at most a quarter where so is said', async (t) => {
  const shares = FreeShares.quarters(8)
  t.equal(most(shares, 'greedy').length, 2)
  t.equal(shares.take('greedy'), 'client')
  const wide = FreeShares.quarters(64)
  const held = Array.from({ length: 64 }, (_, at) => most(wide, `2001:db8:0:${at.toString(16)}::1`).length)
  t.equal(
    held.reduce((sum, one) => sum + one, 0),
    32,
    'its network has half, however many addresses it has',
  )
  t.type(wide.take('198.51.100.7'), 'function', 'a newcomer finds one')
})
