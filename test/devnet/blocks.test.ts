import { randomBytes } from 'node:crypto'
import t from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import { Devnet } from '../../src/devnet/devnet.js'
import { parseId } from '../../src/format/id.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { patient } from '../chain/hostile.js'
import { devnetOf, folderOf, jsonOf, payerOf, signed } from './posting.js'

/** The value that a call was meant to bring. */
async function must<T>(call: Promise<T | Refusal>): Promise<T> {
  const value = await call
  if (isRefusal(value)) throw new Error(value.message)
  return value
}

t.test('data lies in the weave in the order of ids, each on a boundary of 256 KiB', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const chain = new RemoteChain({ ...patient, nodes: [devnet.url] }, systemClock)
  t.teardown(() => chain.close())
  const sizes = new Map<string, number>()
  for (const size of [1, 700, 262_144, 262_145, 300_000]) {
    const data = randomBytes(size)
    const transaction = await signed(payer, { data })
    t.match(
      devnet.submit({ ...transaction.toJSON(), data: data.toString('base64url') }),
      { status: 200 },
      `${size}`,
    )
    sizes.set(transaction.id, size)
  }
  const gift = await signed(payer, { target: randomBytes(32).toString('base64url'), quantity: '1' })
  t.match(devnet.submit(gift.toJSON()), { status: 200 })
  const before = await must(chain.currentBlock())
  devnet.mine()
  const block = await must(chain.currentBlock())
  t.equal(block.transactionIds.length, 6)
  t.equal(block.blockSize, 7 * 262_144)
  t.equal(block.weaveSize, before.weaveSize + block.blockSize)
  t.equal(block.txRoot?.length, 32)
  t.match(await chain.transactionOffset(parseId(gift.id)!), { refused: 'unknown' }, 'no data, no place')

  let at = before.weaveSize
  const order = [...sizes.keys()].sort((a, b) =>
    Buffer.from(a, 'base64url').compare(Buffer.from(b, 'base64url')),
  )
  for (const id of order) {
    const size = sizes.get(id) ?? 0
    const offset = await must(chain.transactionOffset(parseId(id)!))
    t.same(offset, { size, start: at + 1, end: at + size }, id)
    const last = await must(chain.chunk(offset.end))
    t.ok(last.txPath, 'chunks come with their tx_path')
    at += Math.ceil(size / 262_144) * 262_144
    if (at > offset.end)
      t.match(await chain.chunk(offset.end + 1), { refused: 'unknown' }, 'padding has no chunk')
  }
})

t.test('a fork replaces blocks and mines their transactions again', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const get = (path: string) => jsonOf(devnet.url + path)
  devnet.mine(40)
  const first = await signed(payer, { data: 'first' })
  devnet.submit(first.toJSON())
  const old = devnet.mine()
  const second = await signed(payer, { data: 'second' })
  devnet.submit(second.toJSON())
  devnet.mine(3)
  const balance = await payer.client.wallets.getBalance(payer.address)
  const base = await get('/block/height/40')

  t.equal((await jsonOf(`${devnet.url}/devnet/fork/4`, { method: 'POST' })).height, 45)
  const replaced = await get('/block/height/41')
  t.not(replaced.indep_hash, old.indep_hash)
  t.equal(replaced.previous_block, base.indep_hash)
  t.same(replaced.txs, [first.id, second.id], 'both in the first new block')
  t.equal(
    (await get(`/block/hash/${old.indep_hash}`)).indep_hash,
    old.indep_hash,
    'an orphan is still known by hash',
  )
  t.match(await get(`/tx/${second.id}/status`), { block_height: 41, number_of_confirmations: 5 })
  t.equal(await payer.client.wallets.getBalance(payer.address), balance, 'paid once')
  t.equal(await payer.client.wallets.getLastTransactionID(payer.address), second.id)

  devnet.fork(5, { blocks: 5, transactions: 'lost' })
  t.equal((await fetch(`${devnet.url}/tx/${first.id}`)).status, 404)
  t.equal(
    await payer.client.wallets.getBalance(payer.address),
    (10n ** 18n).toString(),
    'a lost payment was not made',
  )
  t.equal(await payer.client.wallets.getLastTransactionID(payer.address), '')
  t.same(await get('/block/height/40'), base)
  t.match(devnet.submit(first.toJSON()), { status: 200 }, 'what was lost may come again')
  t.equal((await fetch(`${devnet.url}/tx/${first.id}/status`)).status, 202, 'and waits again')
  const larger = randomBytes(1_000)
  const third = await signed(payer, { data: larger })
  devnet.submit({ ...third.toJSON(), data: larger.toString('base64url') })
  devnet.mine()
  const place = await jsonOf<{ offset: string }>(`${devnet.url}/tx/${third.id}/offset`)
  const chunk = await get(`/chunk/${Number(place.offset) - 999}`)
  t.equal(
    chunk.chunk,
    larger.toString('base64url'),
    'what was lost does not stand in the way of what came after',
  )
  t.equal((await fetch(`${devnet.url}/devnet/fork/99`, { method: 'POST' })).status, 400)
})

t.test('blocks come by themselves where an interval is set', async (t) => {
  const devnet = await devnetOf(t, { blockMs: 10 })
  let height = 0
  while (height < 3) height = Number(await (await fetch(`${devnet.url}/height`)).text())
  t.ok(height >= 3)
})

t.test('a chain that nobody uses makes fewer blocks, until something is posted', async (t) => {
  let turn = (): void => undefined
  const clock: Clock = {
    ...systemClock,
    every(_, act) {
      turn = act
      return { cancel: () => undefined }
    },
  }
  const options = { host: '127.0.0.1', port: 0, dataPath: folderOf(t), blockMs: 2000 }
  const heights = async (intervals: number): Promise<number> => {
    const { height: before } = await jsonOf<{ height: number }>(devnet.url)
    for (let n = 0; n < intervals; n += 1) turn()
    return (await jsonOf<{ height: number }>(devnet.url)).height - before
  }
  let devnet = await Devnet.start(options, clock)
  t.teardown(() => devnet.stop())
  t.equal(await heights(30), 2, 'one in 30 s on a new chain')
  const payer = await payerOf(devnet)
  const gift = { target: randomBytes(32).toString('base64url'), quantity: '1' }
  t.match(devnet.submit((await signed(payer, gift)).toJSON()), { status: 200 })
  t.equal(await heights(1), 1, 'what waits has its block at the next interval')
  t.equal(await heights(60), 60, 'and becomes deep as usual')
  await devnet.stop()
  devnet = await Devnet.start(options, clock)
  t.equal(await heights(100), 100, 'over a restart, too')
  t.equal(await heights(70), 40 + 2, 'then the chain is at rest again')
  devnet.fork(3)
  t.equal(await heights(30), 30, 'who lost something by a fork waits for blocks')
})
