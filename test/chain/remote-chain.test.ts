import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { parseBlockHash } from '../../src/chain/chain.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import type { ChainOptions } from '../../src/chain/remote-chain-options.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { sound } from '../fixture-file.js'
import { HandClock } from '../http/hand-clock.js'
import { nodeThat, nodeWith, patient } from './hostile.js'

const id: Id = idOfBytes(Buffer.alloc(32, 7))
const hash = parseBlockHash(Buffer.alloc(48, 1).toString('base64url'))!
const other = parseBlockHash(Buffer.alloc(48, 2).toString('base64url'))!
const block = {
  indep_hash: hash,
  previous_block: other,
  height: 7,
  timestamp: 1_700_000_000,
  txs: [id],
  tx_root: Buffer.alloc(32, 3).toString('base64url'),
  weave_size: '351531360100598',
  block_size: '262144',
}

function chainOf(test: Test, nodes: string[], options: Partial<ChainOptions> = {}): RemoteChain {
  const chain = new RemoteChain({ ...patient, ...options, nodes }, systemClock)
  test.teardown(async () => {
    assert.equal(chain.underWay, 0, 'every turn was given back')
    await chain.close()
  })
  return chain
}

function refusal(outcome: unknown): Refusal['refused'] | undefined {
  return isRefusal(outcome) ? outcome.refused : undefined
}

t.test('every kind of answer comes out parsed', async (t) => {
  const node = await nodeWith(t, {
    '/info': JSON.stringify({ network: 'n', height: 7, current: hash, blocks: 8, peers: 2 }),
    '/height': '7',
    '/block/height/7': JSON.stringify(block),
    [`/block/hash/${hash}`]: JSON.stringify(block),
    '/block/current': JSON.stringify(block),
    [`/tx/${id}/status`]: JSON.stringify({
      block_height: 7,
      block_indep_hash: hash,
      number_of_confirmations: 3,
    }),
    [`/tx/${id}/offset`]: '{"size":"256000","offset":"51530681583862"}',
    '/chunk/51530681327863': JSON.stringify({
      chunk: 'AAEC',
      data_path: Buffer.alloc(160).toString('base64url'),
      tx_path: Buffer.alloc(64).toString('base64url'),
      packing: 'unpacked',
    }),
    '/tx_anchor': hash,
    '/price/1000': '65595508',
    [`/price/1000/${id}`]: '65595509',
    [`/wallet/${id}/balance`]: '66000000000000000000',
  })
  const chain = chainOf(t, [node.url])
  t.match(await chain.info(), { network: 'n', height: 7, current: hash })
  t.equal(await chain.height(), 7)
  const parsed = {
    hash,
    previous: other,
    height: 7,
    timestamp: 1_700_000_000,
    transactionIds: [id],
    txRoot: Buffer.alloc(32, 3),
    weaveSize: 351_531_360_100_598,
    blockSize: 262_144,
  }
  const { header, ...rest } = sound(await chain.blockByHeight(7))
  t.same(rest, parsed)
  t.ok(header !== undefined && header.length > 0, 'the rest of its header is kept')
  t.match(await chain.blockByHash(hash), parsed)
  t.match(await chain.currentBlock(), parsed)
  t.same(await chain.transactionStatus(id), { kind: 'mined', height: 7, block: hash, confirmations: 3 })
  t.same(await chain.transactionOffset(id), {
    size: 256_000,
    start: 51_530_681_327_863,
    end: 51_530_681_583_862,
  })
  const chunk = await chain.chunk(51_530_681_327_863)
  t.match(chunk, { node: node.url })
  if (!isRefusal(chunk)) t.same([...chunk.chunk], [0, 1, 2])
  t.same(await chain.tip(), { anchor: hash, height: 7 })
  t.equal(await chain.price(1000), 65_595_508n)
  t.equal(await chain.price(1000, id), 65_595_509n)
  t.equal(await chain.balance(id), 66_000_000_000_000_000_000n)
})

t.test("what has the wrong shape is refused as the node's fault", async (t) => {
  const wrong: Record<string, unknown>[] = [
    { height: -7 },
    { height: 7.5 },
    { height: '07' },
    { indep_hash: `${hash}A` },
    { indep_hash: null },
    { previous_block: '' },
    { txs: [`${id.slice(0, 42)}B`] },
    { txs: [id, id] },
    { txs: { length: 1 } },
    { tx_root: 'AAAA' },
    { weave_size: '9007199254740993' },
    { weave_size: '1e3' },
    { block_size: '351531360100599' },
    { timestamp: 'now' },
  ]
  for (const change of wrong) {
    const node = await nodeWith(t, { '/block/height/7': JSON.stringify({ ...block, ...change }) })
    t.equal(refusal(await chainOf(t, [node.url]).blockByHeight(7)), 'upstream', JSON.stringify(change))
  }
  for (const body of ['', 'null', '[]', '"x"', '{', '{"height":7}', 'Block']) {
    const node = await nodeWith(t, { '/block/height/7': body })
    t.equal(refusal(await chainOf(t, [node.url]).blockByHeight(7)), 'upstream', body)
  }
})

t.test('chunks out of bounds, packed ones and impossible offsets are refused', async (t) => {
  const path = Buffer.alloc(64).toString('base64url')
  const chunks = [
    { chunk: '', data_path: path },
    { chunk: Buffer.alloc(262_145).toString('base64url'), data_path: path },
    { chunk: 'AAEC', data_path: '' },
    { chunk: 'AAEC', data_path: Buffer.alloc(65).toString('base64url') },
    { chunk: 'AAEC', data_path: path, tx_path: 'AA' },
    { chunk: 'AAEC=', data_path: path },
    { chunk: 'AAF', data_path: path },
    { chunk: 'AAEC', data_path: path, packing: 'spora_2_6_abc' },
    { chunk: 7, data_path: path },
  ]
  for (const chunk of chunks) {
    const node = await nodeWith(t, { '/chunk/9': JSON.stringify(chunk) })
    t.equal(refusal(await chainOf(t, [node.url]).chunk(9)), 'upstream', JSON.stringify(chunk).slice(0, 60))
  }
  const offsets = [
    '{"size":"0","offset":"9"}',
    '{"size":"10","offset":"9"}',
    '{"size":"-1","offset":"9"}',
    '{"size":"1"}',
  ]
  for (const offset of offsets) {
    const node = await nodeWith(t, { [`/tx/${id}/offset`]: offset })
    t.equal(refusal(await chainOf(t, [node.url]).transactionOffset(id)), 'upstream', offset)
  }
  for (const price of ['-1', '01', '1.5', '', '"1"', '9'.repeat(31)]) {
    const node = await nodeWith(t, { '/price/1': price })
    t.equal(refusal(await chainOf(t, [node.url]).price(1)), 'upstream', price)
  }
})

t.test('another block than the asked one is called forged', async (t) => {
  const lie = JSON.stringify(block)
  const node = await nodeWith(t, { '/block/height/8': lie, [`/block/hash/${other}`]: lie })
  const chain = chainOf(t, [node.url])
  t.equal(refusal(await chain.blockByHeight(8)), 'forged')
  t.equal(refusal(await chain.blockByHash(other)), 'forged')
})

t.test('after a failing node the next one is asked, and the failing one is avoided', async (t) => {
  const bad = await nodeThat(t, (_, response) => response.writeHead(500).end())
  const good = await nodeWith(t, { '/wallet/w/balance': '7' })
  const chain = chainOf(t, [bad.url, good.url])
  t.equal(await chain.balance('w'), 7n)
  t.equal(await chain.balance('w'), 7n)
  t.same(bad.requested, ['GET /wallet/w/balance'], 'asked once, then left to cool off')
  t.equal(good.requested.length, 2)
})

t.test('after a node with wrong bytes, a broken answer or no connection the next one is asked', async (t) => {
  const good = await nodeWith(t, { '/block/height/8': JSON.stringify({ ...block, height: 8 }) })
  const liar = await nodeWith(t, { '/block/height/8': JSON.stringify(block) })
  const breaker = await nodeThat(t, (_, response) => {
    response.writeHead(200, { 'content-length': 1000 })
    response.write('{"height":', () => response.destroy())
  })
  const slammer = await nodeThat(t, (request) => request.socket.destroy())
  for (const bad of [liar.url, breaker.url, slammer.url, 'http://127.0.0.1:1']) {
    t.match(await chainOf(t, [bad, good.url]).blockByHeight(8), { height: 8 }, bad)
  }
})

t.test('unknown is returned only where every asked node said so', async (t) => {
  const empty = await nodeWith(t, {})
  const bad = await nodeThat(t, (_, response) => response.writeHead(503).end())
  const knows = await nodeWith(t, { [`/tx/${id}/offset`]: '{"size":"1","offset":"9"}' })
  t.equal(refusal(await chainOf(t, [empty.url]).transactionOffset(id)), 'unknown')
  t.equal(refusal(await chainOf(t, [empty.url, bad.url]).transactionOffset(id)), 'upstream')
  t.match(await chainOf(t, [empty.url, knows.url]).transactionOffset(id), { start: 9 })
  const chain = chainOf(t, [bad.url, empty.url])
  t.equal(refusal(await chain.transactionOffset(id)), 'upstream')
  t.equal(refusal(await chain.transactionOffset(id)), 'unknown', 'a node known to be down has no say')
})

t.test(
  'the only node is asked again when its trouble may pass, and not when it talks nonsense',
  async (t) => {
    let left = 2
    const shaky = await nodeThat(t, (_, response) => {
      left -= 1
      if (left >= 0) response.writeHead(502).end()
      else response.end('7')
    })
    t.equal(await chainOf(t, [shaky.url]).balance('w'), 7n)
    const down = await nodeThat(t, (_, response) => response.writeHead(502).end())
    t.equal(refusal(await chainOf(t, [down.url], { attemptsMax: 2 }).balance('w')), 'upstream')
    t.equal(down.requested.length, 2)
    const fool = await nodeThat(t, (_, response) => response.end('seven'))
    t.equal(refusal(await chainOf(t, [fool.url]).balance('w')), 'upstream')
    t.equal(fool.requested.length, 1)
    const control = new AbortController()
    const waiting = chainOf(t, [down.url], { attemptsMax: 99 }).height({ signal: control.signal })
    control.abort()
    t.match(await waiting, { refused: 'late', fault: 'client' })
  },
)

t.test('requests of clients for unknown things do not make a node avoided', async (t) => {
  const page = 'x'.repeat(50_000)
  const node = await nodeThat(t, (request, response) => {
    if (request.url === '/height') response.end('7')
    else response.writeHead(request.url === '/chunk/9' ? 400 : 404).end(page)
  })
  const second = await nodeWith(t, {})
  const chain = chainOf(t, [node.url, second.url], { attemptsMax: 1 })
  t.equal(refusal(await chain.chunk(9)), 'unknown', 'a position behind the weave')
  t.equal(refusal(await chain.transactionOffset(id)), 'unknown', 'a long page that says 404')
  t.equal(refusal(await chain.transactionData(id, 13 << 20)), 'too-large', 'not even asked')
  t.equal(await chain.height(), 7)
})

t.test('what cannot be taken back is asked of several nodes', async (t) => {
  const status = (confirmations: number, block = hash) =>
    JSON.stringify({
      block_height: 7,
      block_indep_hash: block,
      number_of_confirmations: confirmations,
    })
  const path = `/tx/${id}/status`
  const [far, near, fork, pending, unknown] = [
    await nodeWith(t, { [path]: status(1000) }),
    await nodeWith(t, { [path]: status(3) }),
    await nodeWith(t, { [path]: status(1000, other) }),
    await nodeWith(t, { [path]: { status: 202, body: 'Pending' } }),
    await nodeWith(t, {}),
  ]
  const stated = (...nodes: readonly { readonly url: string }[]) =>
    chainOf(
      t,
      nodes.map(({ url }) => url),
    ).agreedStatus(id)
  t.match(await stated(far), { kind: 'mined', confirmations: 1000 })
  t.match(await stated(far, near), { kind: 'mined', height: 7, confirmations: 3 })
  const contested = { kind: 'pending', isContested: true }
  t.same(await stated(far, fork), contested)
  t.same(await stated(far, pending), contested)
  t.same(await stated(unknown, far), contested)
  t.same(await stated(unknown, pending), { kind: 'pending' })
  for (const other of [fork, pending, unknown]) {
    t.match(await stated(far, other, near), { kind: 'mined', confirmations: 3 }, 'two of three')
    t.match(await stated(other, near, far), { kind: 'mined', confirmations: 3 })
  }
  t.same(await stated(unknown, far, pending), contested, 'one of three')
  t.equal(refusal(await stated(unknown, unknown)), 'unknown')
  const late = await nodeWith(t, { [path]: { status: 429, body: 'Too Many Requests' } })
  t.equal(refusal(await stated(far, late)), 'upstream', 'one of two')
  t.equal(refusal(await stated(far, late, late)), 'upstream', 'one of three')
  t.equal(refusal(await stated(unknown, late, late)), 'upstream')
  t.same(await stated(far, near, late), { kind: 'mined', height: 7, block: hash, confirmations: 3 })
  t.equal(refusal(await stated(unknown, unknown, late)), 'unknown')
})

t.test('one of two that answers nothing leaves the other alone, which decides nothing', async (t) => {
  const status = { block_height: 7, block_indep_hash: hash, number_of_confirmations: 1000 }
  const node = await nodeWith(t, { [`/tx/${id}/status`]: JSON.stringify(status) })
  const clock = new HandClock()
  const nodes = [node.url, 'http://127.0.0.1:9']
  const chain = new RemoteChain({ ...patient, nodes }, clock)
  t.teardown(() => chain.close())
  t.equal(refusal(await chain.agreedStatus(id)), 'upstream')
  clock.turn(9 * 60_000)
  t.equal(refusal(await chain.agreedStatus(id)), 'upstream')
  clock.turn(24 * 3600_000)
  t.equal(refusal(await chain.agreedStatus(id)), 'upstream')
  t.equal(
    refusal(await chain.agreedStatus(idOfBytes(Buffer.alloc(32, 8)))),
    'upstream',
    'nor that none has it',
  )
})

t.test('the price is what two of three nodes state', async (t) => {
  const stating = async (price: string) => (await nodeWith(t, { '/price/1': price })).url
  const [liar, one, two] = [await stating('900000000000'), await stating('2396600'), await stating('2396600')]
  for (const nodes of [
    [liar, one, two],
    [one, two, liar],
  ])
    t.equal(await chainOf(t, nodes).price(1), 2_396_600n)
})

t.test('a node that does not answer holds up nothing that the others decide', async (t) => {
  const status = JSON.stringify({ block_height: 7, block_indep_hash: hash, number_of_confirmations: 3 })
  const stated = {
    [`/tx/${id}/status`]: status,
    '/price/1': '2396600',
    '/tx': { status: 200, body: 'OK' },
  }
  const nodes = [await nodeWith(t, stated), await nodeWith(t, stated), await nodeThat(t, () => undefined)]
  const stuck = JSON.stringify({ block_height: 7, block_indep_hash: hash, number_of_confirmations: 60 })
  const deeper = await nodeWith(t, { ...stated, [`/tx/${id}/status`]: stuck })
  const behind = [nodes[0], deeper, deeper].map((node) => node?.url ?? '')
  t.match(await chainOf(t, behind).agreedStatus(id), { confirmations: 60 }, 'one of them stands still')
  const order = [2, 0, 1].map((at) => nodes[at]?.url ?? '')
  const chain = chainOf(t, order, { headMs: 3600_000 })
  t.match(await chain.agreedStatus(id), { kind: 'mined' })
  t.equal(await chain.price(1), 2_396_600n)
  t.equal(await chain.postTransaction({}), 'accepted')
})

t.test('a height that no chain has is no answer', async (t) => {
  for (const height of [2 ** 31, 2 ** 40, 2 ** 53 - 1]) {
    const node = await nodeWith(t, {
      '/info': JSON.stringify({ network: 'n', height, current: hash, blocks: 8, peers: 2 }),
      '/height': String(height),
      [`/block/height/${height}`]: JSON.stringify({ ...block, height }),
      '/block/current': JSON.stringify({ ...block, height }),
      [`/tx/${id}/status`]: JSON.stringify({
        block_height: height,
        block_indep_hash: hash,
        number_of_confirmations: 3,
      }),
    })
    const chain = chainOf(t, [node.url])
    for (const answer of [
      await chain.info(),
      await chain.height(),
      await chain.blockByHeight(height),
      await chain.currentBlock(),
      await chain.transactionStatus(id),
    ])
      t.equal(refusal(answer), 'upstream', String(height))
  }
})

t.test('a pending transaction is told from an unknown one', async (t) => {
  const node = await nodeWith(t, { [`/tx/${id}/status`]: { status: 202, body: 'Pending' } })
  const chain = chainOf(t, [node.url])
  t.same(await chain.transactionStatus(id), { kind: 'pending' })
  t.equal(refusal(await chain.transactionOffset(id)), 'unknown')
})

t.test('a node that hangs, stalls or sends very slowly is late', async (t) => {
  const silent = await nodeThat(t, () => undefined)
  t.equal(refusal(await chainOf(t, [silent.url], { headMs: 100 }).height()), 'late')
  const stuck = await nodeThat(t, (_, response) => {
    response.writeHead(200)
    response.write('{"height":')
  })
  t.equal(refusal(await chainOf(t, [stuck.url], { stallMs: 100 }).info()), 'late')
  const drip = await nodeThat(t, (_, response) => {
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  })
  t.equal(refusal(await chainOf(t, [drip.url], { stallMs: 200 }).info()), 'late')
})

t.test('a long answer that keeps coming is not cut by the stall timer', async (t) => {
  const piece = Buffer.alloc(30_000, 65)
  const slow = await nodeThat(t, (_, response) => {
    let left = 10
    const timer = setInterval(() => {
      left -= 1
      if (left > 0) response.write(piece)
      else {
        clearInterval(timer)
        response.end(piece)
      }
    }, 400)
  })
  const flow = await chainOf(t, [slow.url], { stallMs: 3500 }).transactionData(id, 225_000)
  t.notOk(isRefusal(flow))
  t.equal(isRefusal(flow) ? 0 : (await gather(flow.bytes))?.length, 225_000)
})

t.test('an answer beyond its bound is refused, announced or not', async (t) => {
  const announced = await nodeThat(t, (_, response) => response.end('7'.repeat(5_000)))
  const chunked = await nodeThat(t, (_, response) => {
    response.write('7'.repeat(3_000))
    response.end('7'.repeat(3_000))
  })
  t.equal(refusal(await chainOf(t, [announced.url]).height()), 'too-large')
  t.equal(refusal(await chainOf(t, [chunked.url]).height()), 'too-large')
})

t.test('a header that comes with data is left, and says nothing against the node', async (t) => {
  const path = `/tx/${id}`
  const json = JSON.stringify({ format: 1, id, data: 'A'.repeat(12_000_000), data_size: '9000000' })
  let announced = 0
  let sent = 0
  const node = await nodeThat(t, (request, response) => {
    if (request.url !== path) {
      response.end('7')
      return
    }
    if (announced > 0) response.setHeader('content-length', announced)
    for (let at = 0; at < json.length; at += 65_536) response.write(json.slice(at, at + 65_536))
    response.end()
    sent += 1
  })
  const spare = await nodeWith(t, { '/height': '8' })
  for (announced of [0, json.length]) {
    const chain = chainOf(t, [node.url, spare.url], { attemptsMax: 1 })
    for (let time = 0; time < 5; time += 1) {
      const given = await chain.transaction(id, { signed: false, withoutData: true })
      t.equal(refusal(given), 'too-large')
    }
    t.equal(await chain.height(), 7, 'it is still the first of the nodes')
  }
  t.equal(sent, 10)
})

t.test('a caller that gives up releases its slot at once', async (t) => {
  const silent = await nodeThat(t, () => undefined)
  const chain = chainOf(t, [silent.url], { callsMax: 1, waitingMax: 1 })
  const first = new AbortController()
  const second = new AbortController()
  const calls = [chain.height({ signal: first.signal }), chain.height({ signal: second.signal })]
  t.equal(refusal(await chain.height()), 'busy', 'the line is bounded')
  second.abort()
  first.abort()
  t.same((await Promise.all(calls)).map(refusal), ['late', 'late'])
  t.equal(refusal(await chain.height({ signal: first.signal })), 'late', 'a signal that already fired')
})

t.test('one signal may be used for many calls without a warning', async (t) => {
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  const slow = await nodeThat(t, (_, response) => setTimeout(() => response.end('7'), 20))
  const chain = chainOf(t, [slow.url], { callsMax: 16, connectionsMax: 16, waitingMax: 100 })
  const { signal } = new AbortController()
  const heights = await Promise.all(Array.from({ length: 50 }, () => chain.height({ signal })))
  t.ok(heights.every((height) => height === 7))
  await new Promise(setImmediate)
  t.same(warnings, [])
})

t.test('data arrives decoded, whatever the cuts', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 10_000 }, (_, i) => i % 251))
  const text = bytes.toString('base64url')
  const node = await nodeThat(t, async (_, response) => {
    for (let at = 0; at < text.length; at += 997) {
      response.write(text.slice(at, at + 997))
      await new Promise(setImmediate)
    }
    response.end()
  })
  const flow = await chainOf(t, [node.url]).transactionData(id, bytes.length)
  t.notOk(isRefusal(flow))
  if (!isRefusal(flow)) t.same(await gather(flow.bytes), bytes)
})

t.test('data that is short, long or no base64url ends with a refusal', async (t) => {
  const text = Buffer.alloc(3_000).toString('base64url')
  const wrong: [string, number][] = [
    [text, 3_001],
    [text, 2_999],
    [`${text}!`, 3_001],
    [`${text}A`, 3_001],
    [`${text}AB`, 3_001],
  ]
  for (const [body, size] of wrong) {
    const node = await nodeThat(t, (_, response) => response.end(body))
    const flow = await chainOf(t, [node.url]).transactionData(id, size)
    t.equal(
      isRefusal(flow) || (await gather(flow.bytes)) === undefined,
      true,
      `${body.slice(-3)} for ${size}`,
    )
  }
})

t.test('after a node without the data one that has it is asked', async (t) => {
  const empty = await nodeThat(t, (_, response) => response.end())
  const has = await nodeThat(t, (_, response) => response.end('AAEC'))
  const flow = await chainOf(t, [empty.url, has.url]).transactionData(id, 3)
  t.notOk(isRefusal(flow))
  if (!isRefusal(flow)) t.same(await gather(flow.bytes), Buffer.from([0, 1, 2]))
  t.equal(refusal(await chainOf(t, [empty.url]).transactionData(id, 3)), 'unknown')
})

t.test('a reader that leaves a flow, or aborts it, releases its slot', async (t) => {
  const endless = await nodeThat(t, (_, response) => {
    const timer = setInterval(() => response.write('A'.repeat(4_000)), 5)
    response.on('close', () => clearInterval(timer))
  })
  const chain = chainOf(t, [endless.url])
  const left = await chain.transactionData(id, 3_000_000)
  if (!isRefusal(left)) for await (const piece of left.bytes) if (piece) break
  t.equal(chain.underWay, 0)
  const control = new AbortController()
  const aborted = await chain.transactionData(id, 3_000_000, { signal: control.signal })
  t.equal(chain.underWay, 1)
  control.abort()
  t.equal(chain.underWay, 0)
  t.equal(isRefusal(aborted) ? null : await gather(aborted.bytes), undefined, 'its flow ends with a refusal')
})

t.test("posting tells a node's no from a node's trouble", async (t) => {
  const says = (status: number, body = '') =>
    nodeThat(t, (_, response) => response.writeHead(status).end(body))
  const ok = await says(200, 'OK')
  const trouble = await says(503)
  const no = await says(400, 'Invalid anchor (last_tx).')
  const known = await says(208)
  const rootless = await says(400, '{"error":"data_root_not_found"}')
  t.equal(await chainOf(t, [trouble.url, ok.url]).postTransaction({}), 'accepted')
  t.equal(await chainOf(t, [known.url]).postTransaction({}), 'known')
  for (const text of ['Transaction is already on the weave.', 'Transaction is already in the mempool.']) {
    const later = await says(400, text)
    t.equal(await chainOf(t, [later.url]).postTransaction({}), 'known', text)
  }
  const poolFull = await says(400, 'Mempool is full.')
  t.equal(refusal(await chainOf(t, [poolFull.url], { attemptsMax: 1 }).postTransaction({})), 'upstream')
  t.equal(
    await chainOf(t, [no.url, ok.url]).postTransaction({}),
    'accepted',
    'a node that lags refuses what others take',
  )
  t.match(await chainOf(t, [no.url, no.url]).postTransaction({}), {
    refused: 'malformed',
    message: /Invalid anchor/,
  })
  t.equal(
    refusal(await chainOf(t, [no.url, trouble.url]).postTransaction({})),
    'upstream',
    'not all have said so',
  )
  const limited = await says(403)
  t.equal(refusal(await chainOf(t, [limited.url]).postTransaction({})), 'upstream')
  const full = await says(400, '{"error":"exceeds_disk_pool_size_limit"}')
  t.equal(await chainOf(t, [full.url, rootless.url, ok.url]).postChunk({}), 'accepted')
  t.equal(refusal(await chainOf(t, [rootless.url]).postChunk({})), 'unknown')
  t.equal(refusal(await chainOf(t, [no.url]).postChunk({})), 'malformed')
})

t.test('a transaction is given to several nodes: the one that takes it first may lose it', async (t) => {
  const says = (status: number) => nodeThat(t, (_, response) => response.writeHead(status).end())
  const nodes = await Promise.all([200, 200, 503].map(says))
  t.equal(
    await chainOf(
      t,
      nodes.map(({ url }) => url),
    ).postTransaction({}),
    'accepted',
  )
  t.ok(nodes.every(({ requested }) => requested.length > 0))
})

t.test('an address that is no plain URL is a mistake of the configuration', async (t) => {
  for (const address of ['node', 'ftp://node', 'http://me:secret@node', 'http://node/?x']) {
    t.throws(() => new RemoteChain({ ...patient, nodes: [address] }, systemClock), address)
  }
  t.throws(() => new RemoteChain({ ...patient, nodes: [] }, systemClock))
  const node = await nodeWith(t, { '/below/height': '3' })
  t.equal(await chainOf(t, [`${node.url}/below/`]).height(), 3, 'a path below the host is kept')
})

/** All bytes of a flow; undefined where it ended with a refusal. */
async function gather(flow: AsyncIterable<Uint8Array | Refusal>): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = []
  for await (const piece of flow) {
    if (isRefusal(piece)) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

t.test('a chunk is asked of the node that had its neighbour, and of one that had none at last', async (t) => {
  const path = Buffer.alloc(64).toString('base64url')
  const answer = JSON.stringify({ chunk: 'AAEC', data_path: path })
  const here = Object.fromEntries([7, 8, 9].map((offset) => [`/chunk/${offset}`, answer]))
  const [without, having] = [await nodeWith(t, {}), await nodeWith(t, here)]
  const chain = chainOf(t, [without.url, having.url])
  for (const offset of [7, 8, 9]) t.notOk(isRefusal(await chain.chunk(offset)), `${offset}`)
  t.same(
    [...new Set(without.requested.map((line) => line.replace(/\D+\d?\//, '')))],
    ['7'],
    'it was asked once',
  )
})
