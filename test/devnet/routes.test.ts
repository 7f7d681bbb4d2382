import { randomBytes } from 'node:crypto'
import t from 'tap'
import { devnetOf, payerOf, signed } from './posting.js'

t.test('every route answers as a node does', async (t) => {
  const devnet = await devnetOf(t)
  const payer = await payerOf(devnet)
  const data = Buffer.from('<b>hello</b>')
  const posted = await signed(payer, { data }, (it) => it.addTag('Content-Type', 'text/html; charset=utf-8'))
  const id = posted.id
  devnet.submit(posted.toJSON())
  const old = (await signed(payer, { data: 'old' })).toJSON()
  devnet.mine(2)
  const get = async (path: string) => {
    const response = await fetch(devnet.url + path)
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      body: await response.text(),
    }
  }
  const block = JSON.parse((await get('/block/height/1')).body) as Record<string, string>
  const tip = JSON.parse((await get('/block/current')).body) as Record<string, string>
  const unknown = randomBytes(32).toString('base64url')
  const { offset } = JSON.parse((await get(`/tx/${id}/offset`)).body) as { offset: string }
  const record = { id, format: 2, data: '', data_size: '12', reward: posted.reward }

  const json: [string, object][] = [
    ['/', { height: 2, current: tip.indep_hash }],
    ['/info', { height: 2, current: tip.indep_hash, blocks: 3 }],
    ['/peers', []],
    ['/current_block', { height: 2 }],
    [`/block/hash/${block.indep_hash}`, { height: 1, txs: [id], previous_block: /^[\w-]{64}$/ }],
    ['/block/height/0', { height: 0, previous_block: '' }],
    ['/tx/pending', []],
    [`/tx/${id}`, record],
    [`/unconfirmed_tx/${id}`, record],
    [`/tx/${id}/tags`, [{ name: Buffer.from('Content-Type').toString('base64url') }]],
    [`/tx/${id}/status`, { block_height: 1, block_indep_hash: block.indep_hash, number_of_confirmations: 2 }],
    [`/tx/${id}/offset`, { size: '12', offset: /^\d+$/ }],
    [
      `/chunk/${offset}`,
      { chunk: data.toString('base64url'), packing: 'unpacked', tx_path: /./, data_path: /./ },
    ],
  ]
  for (const [path, like] of json) {
    const { status, type, body } = await get(path)
    t.match(
      { status, type, body: JSON.parse(body) },
      { status: 200, type: 'application/json', body: like },
      path,
    )
  }
  const texts: [string, string | RegExp][] = [
    ['/height', '2'],
    ['/tx_anchor', /^[\w-]{64}$/],
    ['/price/0', /^[1-9]\d*$/],
    [`/price/1000/${unknown}`, /^[1-9]\d*$/],
    [`/tx/${id}/id`, id],
    [`/tx/${id}/owner`, posted.owner],
    [`/tx/${id}/data_size`, '12'],
    [`/tx/${id}/data`, data.toString('base64url')],
    [`/wallet/${payer.address}/balance`, (10n ** 18n - BigInt(posted.reward)).toString()],
    [`/wallet/${payer.address}/last_tx`, id],
    [`/wallet/${unknown}/balance`, '0'],
    [`/wallet/${unknown}/last_tx`, ''],
  ]
  for (const [path, like] of texts) t.match(await get(path), { status: 200, body: like }, path)
  const page = { status: 200, type: 'text/html; charset=utf-8', body: '<b>hello</b>' }
  t.same(await get(`/tx/${id}/data.html`), page, 'with an extension the data comes raw, with its type')

  const failures: [string, number][] = [
    [`/tx/${unknown}`, 404],
    [`/tx/${unknown}/status`, 404],
    [`/tx/${unknown}/offset`, 404],
    [`/tx/${unknown}/data`, 404],
    [`/unconfirmed_tx/${unknown}`, 404],
    ['/tx/short', 400],
    [`/tx/${id.slice(0, 42)}B`, 400],
    [`/tx/${id}/nothing`, 400],
    ['/block/height/3', 404],
    ['/block/height/-1', 400],
    ['/block/height/x', 400],
    [`/block/hash/${'A'.repeat(64)}`, 404],
    ['/block/hash/short', 400],
    [`/block/hash/${'A'.repeat(5000)}`, 400],
    [`/tx/${'A'.repeat(5000)}`, 400],
    [`/${'A'.repeat(5000)}`, 400],
    ['/chunk/0', 404],
    ['/chunk/99999999999999999999', 400],
    ['/chunk/x', 400],
    [`/chunk/${Number(offset) + 1}`, 404],
    [`/chunk/${Number(offset) - 12}`, 404],
    ['/price/x', 400],
    ['/price/1/short', 400],
    ['/wallet/short/balance', 400],
    [`/wallet/${unknown}/nothing`, 400],
    ['/mint/short/1', 400],
    [`/mint/${unknown}/-1`, 400],
    ['/mine/0', 400],
    ['/mine/100000', 400],
    ['/nothing', 400],
    ['/constructor', 400],
    ['/%ff', 400],
  ]
  for (const [path, status] of failures) t.equal((await get(path)).status, status, path)
  t.equal((await fetch(`${devnet.url}/height`, { method: 'DELETE' })).status, 405)
  const head = await fetch(`${devnet.url}/tx/${id}/data`, { method: 'HEAD' })
  t.same([head.status, await head.text()], [200, ''])
  t.ok(old.id, 'never posted, never seen')
  t.equal((await get(`/tx/${old.id}`)).status, 404)
})

t.test('winston can be minted by path, with POST as with GET', async (t) => {
  const devnet = await devnetOf(t)
  const address = randomBytes(32).toString('base64url')
  t.equal(await (await fetch(`${devnet.url}/mint/${address}/5`)).text(), '5')
  t.equal(await (await fetch(`${devnet.url}/mint/${address}/7`, { method: 'POST' })).text(), '12')
})
