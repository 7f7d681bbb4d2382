import t from 'tap'
import { FreeShares } from '../../src/actor/free-shares.js'

/** How many places a client gets where it asks for all. */
function most(shares: FreeShares, client: string): (() => void)[] {
  const leaves: (() => void)[] = []
  for (let leave = shares.take(client); leave !== undefined; leave = shares.take(client)) leaves.push(leave)
  return leaves
}

t.test('one client leaves half, and each newcomer finds a place', async (t) => {
  const shares = new FreeShares(512)
  const first = most(shares, 'a')
  t.equal(first.length, 256)
  t.equal(most(shares, 'b').length, 16)
  for (let at = 0; at < 50; at += 1) t.ok(shares.take(`client ${at}`), 'however many came before')
  t.equal(shares.take('a'), undefined)
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
  for (let at = 0; at < 50; at += 1) t.ok(shares.take(`198.51.${at}.1`), 'a newcomer')
})

t.test('the networks of one provider have three quarters of the places together', async (t) => {
  for (const network of [
    (n: number) => `2001:db8:${n.toString(16)}::`,
    (n: number) => `45.33.${n % 256}.1`,
  ]) {
    const shares = new FreeShares(512)
    for (let at = 0; at < 1000; at += 1) most(shares, network(at))
    for (let at = 0; at < 50; at += 1) t.ok(shares.take(`198.${at}.100.1`), 'a newcomer')
  }
})

t.test('the last place is taken', async (t) => {
  const shares = new FreeShares(2)
  const leave = shares.take('a')
  t.equal(shares.take('a'), undefined)
  t.ok(shares.take('b'))
  t.equal(shares.take('c'), undefined)
  leave?.()
  t.ok(shares.take('c'))
  t.ok(new FreeShares(1).take('a'))
})
