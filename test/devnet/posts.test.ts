import { randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeBase64url } from '../../src/format/base64url.js'
import { transactionJson } from '../../src/format/transaction.js'
import { dataTree } from '../../src/proof/data-root.js'
import { sha256 } from '../../src/proof/digest.js'
import { signTransactionEcdsa } from '../../src/proof/sign.js'
import { ownerOf } from '../../src/proof/transaction-proof.js'
import { devnetOf, jsonOf, payerOf, signed } from './posting.js'

t.test('what a node would refuse is refused, with its error code', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const post = async (body: unknown) => {
    const response = await fetch(`${devnet.url}/tx`, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: response.status, words: await response.text() }
  }
  const good = (await signed(payer, { data: 'good' })).toJSON()

  for (const body of ['', '{', 'null', '[]', '7', '"x"', '{}', { ...good, owner: 7 }, { ...good, id: 'x' }]) {
    t.equal((await post(body)).status, 400, JSON.stringify(body).slice(0, 40))
  }
  const changes: [string, object][] = [
    ['another id', { id: randomBytes(32).toString('base64url') }],
    [
      'a broken signature',
      { signature: (good.signature.startsWith('A') ? 'B' : 'A') + good.signature.slice(1) },
    ],
    ['another reward than signed', { reward: `${good.reward}0` }],
    ['another tag than signed', { tags: [{ name: 'QQ', value: 'Qg' }] }],
    ['other data than the root says', { data: Buffer.from('evil').toString('base64url') }],
    ['a wrong data size', { data_size: '5' }],
  ]
  for (const [name, change] of changes) t.equal((await post({ ...good, ...change })).status, 400, name)

  const stranger = randomBytes(48).toString('base64url')
  t.match(await post(await signed(payer, { data: 'x', last_tx: stranger })), { status: 400, words: /anchor/ })
  t.match(await post(await signed(payer, { data: 'x', reward: '1' })), { status: 400, words: /reward/ })
  const dear = { target: randomBytes(32).toString('base64url'), quantity: '2000000000000000000' }
  t.match(await post(await signed(payer, dear)), { status: 400, words: /balance/ })
  t.match(await post(await signed(payer, { target: payer.address, quantity: '1' })), { status: 400 })
  t.same(await jsonOf(`${devnet.url}/tx/pending`), [], 'nothing of it was kept')

  t.same(await post(good), { status: 200, words: 'OK' })
  t.match(await post(good), { status: 208 })
  t.same(await jsonOf(`${devnet.url}/tx/pending`), [good.id])
  t.equal((await fetch(`${devnet.url}/tx/${good.id}`)).status, 202)
  t.equal((await jsonOf(`${devnet.url}/unconfirmed_tx/${good.id}`)).id, good.id)
  devnet.mine()
  t.match(await post(good), { status: 208 }, 'mined ones are known too')
})

t.test('a transaction of the first format carries its data and comes back with it', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const data = randomBytes(300_000)
  const transaction = await signed(payer, { data }, (it) => {
    Object.assign(it, { format: 1 })
  })
  const json = { ...transaction.toJSON(), data: data.toString('base64url') }
  t.match(devnet.submit({ ...json, data: randomBytes(300_000).toString('base64url') }), { status: 400 })
  t.match(devnet.submit(json), { status: 200 })
  devnet.mine()
  const record = await jsonOf(`${devnet.url}/tx/${transaction.id}`)
  t.match(record, { format: 1, data: json.data })
  t.ok(await payer.client.transactions.verify(payer.client.transactions.fromRaw(record)))
  const { offset, size } = await jsonOf<{ offset: string; size: string }>(
    `${devnet.url}/tx/${transaction.id}/offset`,
  )
  const last = await jsonOf<{ chunk: string }>(`${devnet.url}/chunk/${offset}`)
  t.equal(size, '300000')
  t.equal(
    last.chunk,
    data.subarray(262_144).toString('base64url'),
    'cut every 256 KiB, however small the rest',
  )
})

t.test('waiting transactions may not spend the same winston twice', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const target = randomBytes(32).toString('base64url')
  const half = { target, quantity: '600000000000000000' }
  t.match(devnet.submit((await signed(payer, half)).toJSON()), { status: 200 })
  const second = (await signed(payer, half)).toJSON()
  t.match(devnet.submit(second), { status: 400, body: /balance/ })
  devnet.mine()
  t.match(devnet.submit(second), { status: 400, body: /balance/ }, 'nor after the block')
})

t.test('an empty anchor serves a fresh wallet once, its last transaction after that', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const none = (transaction: { last_tx: string }) => {
    transaction.last_tx = ''
  }
  const first = await signed(payer, { data: 'a' }, none)
  t.match(devnet.submit(first.toJSON()), { status: 200 })
  devnet.mine()
  t.match(devnet.submit((await signed(payer, { data: 'b' }, none)).toJSON()), { status: 400, body: /anchor/ })
  t.match(devnet.submit((await signed(payer, { data: 'c', last_tx: first.id })).toJSON()), { status: 200 })
})

t.test('an anchor grows too old after 50 blocks', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const { indep_hash } = await jsonOf<{ indep_hash: string }>(`${devnet.url}/block/height/0`)
  const old = (await signed(payer, { data: 'old', last_tx: indep_hash })).toJSON()
  devnet.mine(49)
  t.match(devnet.submit(old), { status: 200 }, 'one of the last 50')
  devnet.mine(1)
  t.equal((await fetch(`${devnet.url}/tx/${old.id}/status`)).status, 200)
  const late = (await signed(payer, { data: 'late', last_tx: indep_hash })).toJSON()
  t.match(devnet.submit(late), { status: 400, body: /anchor/ })
})

t.test('a chunk must prove itself under a data root that is known', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const data = randomBytes(700_000)
  const transaction = await signed(payer, { data })
  const chunk = transaction.getChunk(0, data)
  const post = async (body: object) => {
    const response = await fetch(`${devnet.url}/chunk`, { method: 'POST', body: JSON.stringify(body) })
    return { status: response.status, words: await response.text() }
  }
  t.match(await post(chunk), { status: 400, words: /data_root_not_found/ }, 'before its transaction')
  const json = { ...transaction.toJSON(), data: '' }
  t.match(devnet.submit(json), { status: 200 })

  const evil = Buffer.from(chunk.chunk)
  evil[0] = evil[0] === 65 ? 66 : 65
  const wrong: [object, RegExp][] = [
    [{ chunk: evil.toString() }, /invalid_proof/],
    [{ data_path: Buffer.alloc(160).toString('base64url') }, /invalid_proof/],
    [{ data_root: randomBytes(32).toString('base64url') }, /invalid_proof|data_root_not_found/],
    [{ data_size: '700001' }, /invalid_proof|data_root_not_found/],
    [{ offset: '262144' }, /invalid_proof/],
    [{ offset: '700000' }, /./],
    [{ offset: '-1' }, /./],
    [{ chunk: Buffer.alloc(262_145).toString('base64url') }, /chunk_too_big/],
    [{ data_path: Buffer.alloc(262_145).toString('base64url') }, /data_path_too_big/],
    [{ chunk: '' }, /./],
    [{ chunk: 7 }, /./],
  ]
  for (const [change, words] of wrong) {
    t.match(await post({ ...chunk, ...change }), { status: 400, words }, JSON.stringify(change).slice(0, 50))
  }
  devnet.mine()
  const { offset } = await jsonOf<{ offset: string }>(`${devnet.url}/tx/${json.id}/offset`)
  const start = Number(offset) - 700_000 + 1
  t.equal((await fetch(`${devnet.url}/chunk/${start}`)).status, 404, 'nothing of it was kept')
  t.equal((await fetch(`${devnet.url}/tx/${json.id}/data`)).headers.get('content-length'), '0')
  t.match(await post(transaction.getChunk(1, data)), { status: 200 }, 'a chunk may come after its block')
  t.equal((await fetch(`${devnet.url}/chunk/${start + 262_144}`)).status, 200)
  t.equal((await fetch(`${devnet.url}/chunk/${start}`)).status, 404, 'the one before it is still missing')
  t.match(await post(chunk), { status: 200 })
  t.equal((await fetch(`${devnet.url}/chunk/${start + 262_143}`)).status, 200)
  t.equal((await fetch(`${devnet.url}/chunk/${start + 524_288}`)).status, 404)
})

t.test('a body larger than any transaction is refused, and the node goes on', async (t) => {
  const devnet = await devnetOf(t)
  const response = await fetch(`${devnet.url}/tx`, { method: 'POST', body: 'x'.repeat(20 << 20) })
  t.equal(response.status, 413)
  t.equal((await fetch(`${devnet.url}/height`)).status, 200)
})

t.test('a transaction signed by a secp256k1 key is paid by the address of the key', async (t) => {
  const devnet = await devnetOf(t)
  const data = Buffer.from('curved')
  const unsigned = {
    format: 2 as const,
    lastTx: Buffer.from(await (await fetch(`${devnet.url}/tx_anchor`)).text(), 'base64url'),
    tags: [],
    target: new Uint8Array(0),
    quantity: 0n,
    data,
    dataSize: data.length,
    dataRoot: dataTree(data).root,
    reward: 10n ** 12n,
    denomination: 0,
  }
  const tx = signTransactionEcdsa(unsigned, randomBytes(32))
  const address = encodeBase64url(sha256(ownerOf(tx)))
  t.match(devnet.submit(transactionJson(tx)), { status: 400 }, 'nobody with winston signed it')
  devnet.mint(address, 10n ** 13n)
  t.match(devnet.submit(transactionJson(tx)), { status: 200 })
  const dear = signTransactionEcdsa({ ...unsigned, denomination: 2 }, randomBytes(32))
  t.match(devnet.submit(transactionJson(dear)), { status: 400, body: /redenominated/ })
  devnet.mine()
  t.match(await jsonOf(`${devnet.url}/tx/${tx.id}`), { owner: '', signature: encodeBase64url(tx.signature) })
  t.equal(await (await fetch(`${devnet.url}/wallet/${address}/balance`)).text(), String(9n * 10n ** 12n))
})
