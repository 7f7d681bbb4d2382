import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { jsonOf, signed } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { fc } from '../property.js'
import { weave } from '../source/weave.js'
import { type NodeStage, nodeStage, twisted } from './node-rig.js'

/** One chain for all tests: making its owner's key takes seconds. */
const shared = weave(t)

/** Only the head of a POST: the answer to one that is too large comes before its body, which a client may still be sending. */
function announced(gateway: NodeStage, path: string, bytes: number) {
  return gateway.ask(path, { method: 'POST', headers: { 'content-length': String(bytes) } })
}

/** A signed transaction, not posted, and its chunks as they are posted. */
async function draft(data: Uint8Array) {
  const { payer } = await shared
  const transaction = await signed(payer, { data })
  const chunks = (transaction.chunks?.chunks ?? []).map((_, index) => transaction.getChunk(index, data))
  const header = JSON.stringify({ ...transaction.toJSON(), data: '' })
  return { transaction, chunks, header }
}

t.test('a chunk is proven, passed on to the node, and served before the node has it', async (t) => {
  const here = await shared
  const node = await twisted(t, here.devnet.url, (request, response) => {
    if (request.method !== 'GET' || request.url?.startsWith('/chunk/') !== true) return false
    response.writeHead(404).end()
    return true
  })
  const gateway = await nodeStage(t, [node.url])
  const data = randomBytes(600_000)
  const { transaction, chunks, header } = await draft(data)
  t.equal((await gateway.post('/tx', header)).status, 200)
  for (const chunk of chunks) {
    const { status, text } = await gateway.post('/chunk', JSON.stringify(chunk))
    t.equal(status, 200)
    t.match(JSON.parse(text), {
      successCount: 1,
      preferredSuccessCount: 1,
      failureCount: 0,
      results: [{ peer: node.url, success: true, statusCode: 200, canceled: false, timedOut: false }],
    })
  }
  here.devnet.mine()
  const id = transaction.id as Parameters<typeof here.chain.transactionOffset>[0]
  const place = await here.chain.transactionOffset(id)
  if (isRefusal(place)) throw new Error(place.message)
  t.equal((await gateway.ask(`/chunk/${place.start}`)).status, 404, 'nothing says yet what lies there')
  t.equal((await gateway.ask(`/tx/${transaction.id}/offset`)).status, 200)
  const served = await gateway.ask(`/chunk/${place.start + 300_000}/data`)
  t.equal(served.status, 200)
  t.ok(served.body.equals(data.subarray(262_144, 262_144 + served.body.length)))
  t.equal(served.headers['x-chain-chunk-tx-id'], transaction.id)
})

t.test('a chunk that nodes refuse is not kept', async (t) => {
  const here = await shared
  const node = await twisted(t, here.devnet.url, (request, response) => {
    if (request.url?.startsWith('/chunk') !== true) return false
    response.writeHead(request.method === 'POST' ? 400 : 404).end()
    return true
  })
  const gateway = await nodeStage(t, [node.url])
  const { transaction, chunks, header } = await draft(randomBytes(1000))
  t.equal((await gateway.post('/tx', header)).status, 200)
  t.equal((await gateway.post('/chunk', JSON.stringify(chunks[0]))).status, 400)
  here.devnet.mine()
  const id = transaction.id as Parameters<typeof here.chain.transactionOffset>[0]
  const place = await here.chain.transactionOffset(id)
  if (isRefusal(place)) throw new Error(place.message)
  t.equal((await gateway.ask(`/tx/${transaction.id}/offset`)).status, 200)
  t.equal((await gateway.ask(`/chunk/${place.start}/data`)).status, 404)
})

t.test('a wrong chunk is refused in the words of nodes, and passed on to no node', async (t) => {
  const here = await shared
  const node = await twisted(t, here.devnet.url, () => false)
  const gateway = await nodeStage(t, [node.url])
  const { chunks } = await draft(randomBytes(300_000))
  const [good] = chunks
  const faults: [object, string][] = [
    [{ ...good, chunk: good?.chunk.replace(/^./, '!') }, 'invalid_json'],
    [{ ...good, chunk: Buffer.alloc(1000).toString('base64url') }, 'invalid_proof'],
    [{ ...good, data_root: Buffer.alloc(32).toString('base64url') }, 'invalid_proof'],
    [{ ...good, data_root: '' }, 'invalid_proof'],
    [{ ...good, data_path: 'AA' }, 'invalid_proof'],
    [{ ...good, offset: '300000' }, 'offset_too_big'],
    [{ ...good, offset: '-1' }, 'offset_too_big'],
    [{ ...good, data_size: '9'.repeat(30) }, 'data_size_too_big'],
    [{ ...good, chunk: Buffer.alloc(262_145).toString('base64url') }, 'chunk_too_big'],
    [{}, 'invalid_json'],
  ]
  for (const [body, error] of faults) {
    const answer = await gateway.post('/chunk', JSON.stringify(body))
    t.equal(answer.status, 400, error)
    t.same(JSON.parse(answer.text), { error, code: 'SLC_MALFORMED' })
  }
  for (const body of ['', 'null', '[]', '"x"', '{', '\u0000'.repeat(100)]) {
    t.equal((await gateway.post('/chunk', body)).status, 400, JSON.stringify(body.slice(0, 10)))
  }
  t.equal((await announced(gateway, '/chunk', 367_002)).status, 413)
  t.strictSame(
    node.requests.filter((line) => line.startsWith('POST')),
    [],
  )
})

/** An object is no number, whatever it converts to: some cannot be converted. */
const numberOf = (value: unknown): number => (typeof value === 'object' ? Number.NaN : Number(value))

t.test('whatever is posted as a chunk, the answer is well-formed, and nothing is passed on', async (t) => {
  const here = await shared
  const node = await twisted(t, here.devnet.url, () => false)
  const gateway = await nodeStage(t, [node.url])
  const { chunks } = await draft(randomBytes(1000))
  const good = { ...chunks[0] } as Record<string, string>
  const names = fc.constantFrom('chunk', 'data_root', 'data_path', 'data_size', 'offset')
  const value = fc.oneof(fc.jsonValue(), fc.base64String(), fc.nat().map(String))
  const mutant = fc
    .tuple(names, value)
    .filter(
      ([name, other]) =>
        name !== 'offset' && other !== good[name] && numberOf(other) !== numberOf(good[name]),
    )
    .map(([name, other]) => JSON.stringify({ ...good, [name]: other }))
  const bytes = fc.uint8Array({ maxLength: 2000 }).map((it) => Buffer.from(it).toString('latin1'))
  const cut = fc.nat(JSON.stringify(good).length - 1).map((at) => JSON.stringify(good).slice(0, at))
  await fc.assert(
    fc.asyncProperty(fc.oneof(mutant, bytes, cut, fc.json()), async (body) => {
      const { status } = await gateway.post('/chunk', body)
      return status === 400
    }),
    { numRuns: 300 },
  )
  t.strictSame(
    node.requests.filter((line) => line.startsWith('POST')),
    [],
  )
})

t.test('bodies that come as slowly as they may keep no other out', async (t) => {
  const gateway = await nodeStage(t, ['http://127.0.0.1:1'], {
    clientOf: (request) => request.header('x-client') ?? '',
  })
  const { port, hostname } = new URL(gateway.url)
  for (const [path, places, bytes] of [
    ['/chunk', 128, 10_000],
    ['/tx', 8, 100_000],
  ] as const) {
    let closed = 0
    await Promise.all(
      Array.from({ length: places }, async (_, at) => {
        const socket = connect(Number(port), hostname)
        t.teardown(() => socket.destroy())
        socket.on('error', () => undefined)
        socket.resume().once('close', () => {
          closed += 1
        })
        await once(socket, 'connect')
        const lines = ['Host: x', `X-Client: 10.${at}.0.1`, `Content-Length: ${bytes}`]
        socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{`)
      }),
    )
    const other = async (from: string): Promise<number> => {
      const headers = { 'x-client': from }
      const answer = await fetch(gateway.url + path, { method: 'POST', headers, body: ' '.repeat(bytes) })
      await answer.arrayBuffer()
      return answer.status
    }
    t.ok(
      await eventually('the other client is answered', async () => (await other('198.51.100.7')) === 400),
      `${path}: it was read`,
    )
    for (let turn = 0; turn < 10; turn += 1) t.equal(await other(`198.${turn}.100.7`), 400)
    t.equal(closed, 1, 'one made room, and none had to be waited for')
  }
})

t.test('the refusal of most nodes is the answer to a chunk', async (t) => {
  const here = await shared
  const { chunks } = await draft(randomBytes(1000))
  const unpaid = await nodeStage(t, [here.devnet.url])
  const answer = await unpaid.post('/chunk', JSON.stringify(chunks[0]))
  t.equal(answer.status, 400, 'the node does not know the data root')
  t.match(JSON.parse(answer.text), { successCount: 0, failureCount: 1, results: [{ statusCode: 400 }] })
  const gone = await nodeStage(t, ['http://127.0.0.1:1'])
  t.equal((await gone.post('/chunk', JSON.stringify(chunks[0]))).status, 502)
})

t.test("a transaction is checked here, and the node's answer is the answer", async (t) => {
  const here = await shared
  const node = await twisted(t, here.devnet.url, () => false)
  const gateway = await nodeStage(t, [node.url])
  const { transaction } = await draft(randomBytes(1000))
  const json = transaction.toJSON() as unknown as Record<string, unknown>
  const other = await draft(randomBytes(1000))
  const wrong: [object | string, RegExp][] = [
    ['{', /^Invalid transaction: not JSON/],
    [{}, /^Invalid transaction/],
    [{ ...json, quantity: '-5' }, /^Invalid transaction/],
    [{ ...json, quantity: '5' }, /^Invalid signature/],
    [{ ...json, id: other.transaction.id }, /^Invalid signature: the id/],
    [{ ...json, data: 'AAAA' }, /^Invalid (transaction|signature)/],
  ]
  for (const [body, words] of wrong) {
    const answer = await gateway.post('/tx', typeof body === 'string' ? body : JSON.stringify(body))
    t.equal(answer.status, 400)
    t.match(answer.text, words)
  }
  t.equal((await announced(gateway, '/tx', 16 << 20)).status, 413)
  t.strictSame(node.requests, [], 'no node heard of any of these')
  t.equal((await gateway.post('/tx', JSON.stringify(json))).status, 200)
  t.equal((await gateway.post('/tx', JSON.stringify(json))).status, 208, 'known by now')
  t.equal((await jsonOf<string[]>(`${here.devnet.url}/tx/pending`)).includes(transaction.id), true)
  const nodes = await Promise.all([1, 2, 3, 4].map(() => twisted(t, here.devnet.url, () => false)))
  const several = await nodeStage(
    t,
    nodes.map(({ url }) => url),
  )
  t.equal((await several.post('/tx', JSON.stringify(other.transaction.toJSON()))).status, 200)
  t.ok(
    await eventually(
      'three nodes have the transaction',
      () => nodes.filter(({ requests }) => requests.includes('POST /tx')).length === 3,
    ),
    'three nodes know it',
  )
  const gone = await nodeStage(t, ['http://127.0.0.1:1'])
  t.equal((await gone.post('/tx', JSON.stringify(json))).status, 502)
})

t.test('on a dry run posts are checked, and passed on to no node', async (t) => {
  const here = await shared
  let heard = 0
  const node = await twisted(t, here.devnet.url, (request) => {
    if (request.method === 'POST') heard += 1
    return false
  })
  const gateway = await nodeStage(t, [node.url], { dryRun: true })
  const { chunks, header } = await draft(randomBytes(300_000))
  const [good] = chunks
  t.same(await gateway.post('/tx', header), { status: 200, text: 'OK' })
  t.match(await gateway.post('/tx', header.replace('"quantity":"0"', '"quantity":"1"')), { status: 400 })
  t.match(await gateway.post('/chunk', JSON.stringify(good)), { status: 200, text: /"successCount":0/ })
  t.match(await gateway.post('/chunk', JSON.stringify({ ...good, data_path: 'AA' })), { status: 400 })
  t.equal(heard, 0)
})
