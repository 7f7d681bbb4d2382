/** Free bytes, and who cannot have those of all. */
import { join } from 'node:path'
import t from 'tap'
import type { ItemHeader } from '../../../src/format/item.js'
import { ethereumSigner } from '../../../src/proof/sign.js'
import { freeUserOf } from '../../../src/upload/charging/charging.js'
import { FreePools, type FreeUser } from '../../../src/upload/records/free-pools.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import type { Uploader } from '../../../src/upload/requests/uploader.js'

const rules = { itemMaxBytes: 1000, walletBytes: 1000, rangeBytes: 1000, exemptWallets: [] }

t.test('a site of IPv6 has as much as 256 ranges have, however many it has', async (t) => {
  const environment = openUploadTables(join(t.testdir(), 'uploads'))
  t.teardown(() => environment.close())
  const pools = new FreePools(environment, rules)
  const take = (range: string, at: number): boolean =>
    pools.reserveHere({ wallet: `wallet ${at}`, range }, 1000) !== undefined
  const taken = Array.from({ length: 300 }, (_, at) => take(`2001:db8:1:${at.toString(16)}::`, at))
  t.equal(taken.filter(Boolean).length, 256)
  t.equal(pools.leftOfRange('2001:db8:1:ffff::'), 0)
  t.equal(take('2001:db8:2::', 301), true, 'another site has its own')
  t.equal(pools.leftOfRange('2001:db8:2:1::'), 1000)
  const last = pools.reserveHere({ range: '2001:db8:3::' }, 600)
  t.strictSame(last?.keys, ['r:2001:db8:3::', 's:2001:db8:3::', 'p:2001:db8::'])
  if (last !== undefined) pools.refund(last)
  t.equal(pools.leftOfRange('2001:db8:3::'), 1000, 'what is given back is there again')
  for (let at = 400; at < 800; at += 1) t.equal(take(`198.51.${at >> 8}.${at & 255}`, at), true)
})

t.test('a provider of IPv6 has as much as 65,536 ranges have, however many sites it has', async (t) => {
  const environment = openUploadTables(join(t.testdir(), 'uploads'))
  t.teardown(() => environment.close())
  const pools = new FreePools(environment, rules)
  const used = { keys: ['p:2001:db8::'], bytes: 65_536 * 1000 - 500 }
  environment.write(() => pools.record(used))
  t.equal(pools.leftOfRange('2001:db8:77::'), 500, 'no site of it has more')
  t.equal(pools.reserveHere({ range: '2001:db8:78::' }, 501), undefined)
  t.ok(pools.reserveHere({ range: '2001:db8:78::' }, 500))
  t.equal(pools.leftOfRange('2001:db9:1::'), 1000, 'another provider has its own')
})

t.test('an address range is charged for the records of each item, a wallet is not', async (t) => {
  const environment = openUploadTables(join(t.testdir(), 'uploads'))
  t.teardown(() => environment.close())
  const pools = new FreePools(environment, { ...rules, itemOverheadBytes: 300 })
  const range = '198.51.100.7'
  const taken = pools.reserveHere({ wallet: 'one', range }, 100)
  if (taken === undefined) throw new Error('100 bytes are free')
  environment.write(() => pools.record(taken))
  t.equal(pools.left('one', range), 900)
  t.equal(pools.leftOfRange(range), 600)
  t.equal(new FreePools(environment, rules).leftOfRange(range), 600, 'on disk, too')
  const second = pools.reserveHere({ wallet: 'two', range }, 300)
  t.ok(second)
  t.equal(pools.reserveHere({ wallet: 'three', range }, 1), undefined, 'nothing is left of the range')
  if (second !== undefined) pools.refund(second)
  t.equal(pools.leftOfRange(range), 600)
  t.ok(pools.reserveHere({ wallet: 'three', range: undefined }, 1000), 'this machine itself is not counted')
})

t.test('what strangers post of a wallet takes nothing from its owner elsewhere', async (t) => {
  const environment = openUploadTables(join(t.testdir(), 'uploads'))
  t.teardown(() => environment.close())
  const pools = new FreePools(environment, { ...rules, rangeBytes: 5000 })
  const [stranger, beside, owner, home] = ['198.51.100.7', '198.51.100.8', '203.0.113.5', '203.0.113.9']
  const take = (range: string | undefined): boolean => {
    const taken = pools.reserveHere({ wallet: 'owner', range }, 1000)
    if (taken !== undefined) environment.write(() => pools.record(taken))
    return taken !== undefined
  }
  t.ok(take(stranger))
  t.notOk(take(stranger))
  t.notOk(take(beside), 'all of its network has so much of this wallet')
  t.equal(pools.left('owner', owner), 1000)
  t.ok(take(owner))
  t.equal(pools.left('owner', home), 0)
  t.equal(new FreePools(environment, rules).left('owner', stranger), 0, 'on disk, too')
  t.ok(take(undefined), 'from this machine')
  t.equal(pools.left('owner'), 0)
})

t.test('a bundle costs its range the records of each of its items', async (t) => {
  const environment = openUploadTables(join(t.testdir(), 'uploads'))
  t.teardown(() => environment.close())
  const pools = new FreePools(environment, { ...rules, itemOverheadBytes: 100 })
  const taker = { wallet: 'one', range: '198.51.100.7', itemsInside: 4 }
  const taken = pools.reserveHere(taker, 200)
  t.match(taken, { bytes: 200, rangeBytes: 700 })
  t.equal(pools.left('one', taker.range), 800)
  t.equal(pools.leftOfRange(taker.range), 300)
  t.equal(pools.reserveHere({ ...taker, itemsInside: 3 }, 1), undefined)
  t.ok(pools.reserveHere({ ...taker, itemsInside: 1 }, 100))
})

t.test('the list of who has used most names ranges and wallets, and no site twice', async (t) => {
  const environment = openUploadTables(join(t.testdir(), 'uploads'))
  t.teardown(() => environment.close())
  const pools = new FreePools(environment, rules)
  const taken = pools.reserveHere({ wallet: 'a wallet', range: '2001:db8:1:2::' }, 600)
  if (taken === undefined) throw new Error('600 bytes are free')
  environment.write(() => pools.record(taken))
  const { known, most } = await pools.listed(10)
  t.equal(known, 2)
  t.strictSame(most.map(({ name }) => name).sort(), ['2001:db8:1:2::', 'a wallet 2001:db8:1::'])
})

t.test(
  'a key that signs in several ways has all of its wallets known, however it spells itself',
  async (t) => {
    const environment = openUploadTables(join(t.testdir(), 'uploads'))
    t.teardown(() => environment.close())
    const pools = new FreePools(environment, rules)
    const name = '0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1'
    const uploader: Uploader = { address: '198.51.100.7', paidBy: [], token: undefined }
    const key = ethereumSigner(Buffer.alloc(32, 1)).owner
    const takerOf = (signatureType: number, owner: Uint8Array): FreeUser => {
      return freeUserOf({ signatureType, owner } as ItemHeader, uploader)
    }
    const texts = [name, name.toLowerCase(), `0x${name.slice(2).toUpperCase()}`]
    const typed = texts.map((text) => takerOf(7, Buffer.from(text)))
    const [one, ...others] = typed
    for (const other of others) t.equal(other.wallet, one?.wallet, 'one wallet, whatever its spelling')
    const take = (taker: FreeUser, bytes: number): void => {
      const taken = pools.reserveHere(taker, bytes)
      if (taken === undefined) throw new Error('it is free')
      environment.write(() => pools.record(taken))
    }
    take(takerOf(3, key), 500)
    t.equal(pools.left(name, uploader.address), 500)
    for (const taker of typed) take(taker, 100)
    t.equal(pools.left(name, uploader.address), 500, 'what the other wallet has taken is not forgotten')
    const { most } = await pools.listed(10)
    const [user = ''] = most
      .filter(({ name: of }) => of.startsWith(one?.wallet ?? '?'))
      .map(({ name: of }) => of)
    t.ok(user.startsWith(one?.wallet ?? '?'))
    for (const listed of [one?.wallet ?? '', name])
      for (const taker of typed)
        t.strictSame(
          new FreePools(environment, { ...rules, exemptWallets: [listed] }).reserveHere(taker, 9999)?.keys,
          [],
        )
  },
)
