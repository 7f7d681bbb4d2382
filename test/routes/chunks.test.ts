import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Tip } from '../../src/actor/shared.js'
import { type Admission, receiptLine } from '../../src/admission/admission-port.js'
import { isRefusal } from '../../src/format/refusal.js'
import { Guard } from '../../src/gateway/guard.js'
import type { Request } from '../../src/http/exchange.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import type { SubjectKind } from '../../src/moderation/moderation-messages.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { verifiedByFirst, verifiedBySecond } from '../attest/verifiers.js'
import { eventually } from '../eventually.js'
import { type Answered, freshened } from '../gateway/rig.js'
import { fc } from '../property.js'
import { someId } from '../source/rig.js'
import { type Weave, weave } from '../source/weave.js'
import { type ChunkJson, chunkOf, nodeStage, twisted } from './node-rig.js'

const size = 700_000
const data = randomBytes(size)

/** A chain with one transaction between others in one block and more blocks around it. */
async function chain(): Promise<{ here: Weave; id: string; start: number }> {
  const here = await weave(t)
  here.devnet.mine(3)
  const id = await here.post(data)
  await here.post(randomBytes(1000))
  here.devnet.mine(60)
  const place = await here.chain.transactionOffset(id)
  if (isRefusal(place)) throw new Error(place.message)
  return { here, id, start: place.start }
}

/** One for all tests: making its owner's key takes seconds. */
const shared = chain()

const sha256 = (bytes: Uint8Array, form: 'base64' | 'base64url'): string =>
  createHash('sha256').update(bytes).digest(form)

async function signed(
  url: string,
  path: string,
  { status, fields }: Answered,
  method = 'GET',
): Promise<boolean> {
  const exchange = { method, url: url + path, status, fields }
  return (await verifiedByFirst(exchange)) && (await verifiedBySecond(exchange))
}

t.test('an operator may have no blocks searched for offsets that are not indexed', async (t) => {
  const { here, start } = await shared
  const requested: string[] = []
  const node = await twisted(t, here.devnet.url, ({ url = '' }) => {
    requested.push(url)
    return false
  })
  const gateway = await nodeStage(t, [node.url], { finder: { searchesChain: false } })
  t.equal((await gateway.ask(`/chunk/${start}`)).status, 404)
  t.same(
    requested.filter((url) => /^\/(block|chunk)/.test(url)),
    [],
  )
})

t.test('a chunk is served as JSON and raw, with its place, digest and signature', async (t) => {
  const { here, id, start } = await shared
  const gateway = await nodeStage(t, [here.devnet.url])
  const path = `/chunk/${start + 300_000}`
  const json = await gateway.ask(path)
  t.equal(json.status, 200)
  t.equal(json.headers['content-type'], 'application/json; charset=utf-8')
  const shown = JSON.parse(json.body.toString()) as ChunkJson
  t.same(shown, await chunkOf(here.devnet.url, start + 300_000), 'what the node says')
  t.equal(json.headers.etag, `"${sha256(json.body, 'base64url')}"`)
  t.equal(json.headers['content-digest'], `sha-256=:${sha256(json.body, 'base64')}:`)
  t.equal(json.headers['x-cache'], 'MISS')
  t.equal(json.headers['x-gateway-chunk-source-type'], 'arweave-network')
  t.equal(json.headers['x-gateway-chunk-host'], new URL(here.devnet.url).host)
  t.ok(await signed(gateway.url, path, json))

  const raw = await gateway.ask(`${path}/data`)
  const bytes = data.subarray(262_144, 524_288)
  t.ok(raw.body.equals(bytes))
  t.match(raw.headers, {
    'content-type': 'application/octet-stream',
    'cache-control': 'public, max-age=1000, immutable',
    'content-digest': `sha-256=:${sha256(bytes, 'base64')}:`,
    etag: `"${sha256(bytes, 'base64url')}"`,
    'x-cache': 'HIT',
    'x-gateway-chunk-source-type': 'cache',
    'x-chain-chunk-start-offset': String(start + 262_144),
    'x-chain-chunk-relative-start-offset': '262144',
    'x-chain-chunk-read-offset': String(300_000 - 262_144),
    'x-chain-chunk-tx-data-size': String(size),
    'x-chain-chunk-tx-start-offset': String(start),
    'x-chain-chunk-tx-id': id,
    'x-chain-chunk-data-path': shown.data_path,
    'x-chain-chunk-tx-path': shown.tx_path,
  })
  t.equal(raw.headers['x-gateway-chunk-host'], undefined)
  t.ok(await signed(gateway.url, `${path}/data`, raw))
  t.match(raw.headers['signature-input'], /"x-chain-chunk-data-root".*"x-chain-chunk-tx-id"/)

  const head = await gateway.ask(path, { method: 'HEAD' })
  t.equal(head.body.length, 0)
  t.equal(head.headers['content-length'], String(json.body.length))
  t.equal(head.headers.etag, json.headers.etag)
})

t.test('the other vocabulary has the same values under its own names', async (t) => {
  const { here, id, start } = await shared
  const gateway = await nodeStage(t, [here.devnet.url], { vocabulary: 'ar-io' })
  const raw = await gateway.ask(`/chunk/${start}/data`)
  t.match(raw.headers, {
    'x-ar-io-chunk-source-type': 'arweave-network',
    'x-arweave-chunk-tx-id': id,
    'x-arweave-chunk-read-offset': '0',
  })
  t.ok(await signed(gateway.url, `/chunk/${start}/data`, raw))
})

t.test('a client that has the chunk gets 304', async (t) => {
  const { here, start } = await shared
  const gateway = await nodeStage(t, [here.devnet.url])
  const path = `/chunk/${start}/data`
  const kept = await gateway.ask(path)
  const { etag = '' } = kept.headers
  for (const wish of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const answer = await gateway.ask(path, { headers: { 'if-none-match': wish } })
    t.equal(answer.status, 304, wish)
    t.equal(answer.body.length, 0)
    t.equal(answer.headers.etag, etag)
    t.notOk('signature' in answer.headers)
    t.ok(await signed(gateway.url, path, freshened(kept, answer)), 'what a cache keeps still verifies')
  }
  const other = { headers: { 'if-none-match': '"other"' } }
  t.equal((await gateway.ask(path, other)).status, 200)
})

t.test('an answer that tells of a payment is for who paid, and no shared cache may keep it', async (t) => {
  const { here, start } = await shared
  let receipt = `${receiptLine}e30=`
  const admission: Admission = {
    takeFirst: () => true,
    freeDelayMs: () => 0,
    admit: () => ({ lines: receipt, returnUnsent: () => undefined }),
  }
  const gateway = await nodeStage(t, [here.devnet.url], { admission })
  const kept = someId()
  await gateway.keep(kept, Buffer.from('kept'))
  gateway.has.set(someId(), { body: Buffer.from('brought') })
  const [brought = ''] = gateway.has.keys()
  const paths = ['', '/data'].map((end) => `/chunk/${start}${end}`)
  // Small answers of nodes take no tokens, so that none of them tells of a payment.
  paths.push(`/raw/${kept}`, `/${kept}`, `/tx/${kept}/data`, `/raw/${brought}`)
  for (const path of paths) {
    const paid = await gateway.ask(path)
    t.match(paid, { status: 200, headers: { 'cache-control': /^private, max-age/ } }, path)
  }
  receipt = ''
  for (const path of paths)
    t.match((await gateway.ask(path)).headers['cache-control'], /^public, max-age/, path)
})

t.test('malformed and unknown offsets are refused without asking nodes', async (t) => {
  const { here, start } = await shared
  const node = await twisted(t, here.devnet.url, () => false)
  const gateway = await nodeStage(t, [node.url])
  for (const text of ['x', '-1', '1.5', '0x10', '%31']) {
    const answer = await gateway.ask(`/chunk/${text}`)
    t.equal(answer.status, 400, text)
    t.equal(answer.body.toString(), 'Invalid offset')
  }
  t.equal((await gateway.ask('/chunk/')).status, 405, 'there chunks are taken, by POST')
  for (const text of ['0', '9'.repeat(40), `${start}/other`, '9000000000000000']) {
    t.equal((await gateway.ask(`/chunk/${text}`)).status, 404, text)
  }
  t.strictSame(node.requests, ['GET /block/current'], 'only the length of the weave was asked for')
  const padding = await gateway.ask(`/chunk/${start + size + 10}`)
  t.equal(padding.status, 404)
  t.equal(padding.headers.signature, undefined)
  t.equal((await gateway.ask(`/chunk/${start}`, { method: 'DELETE' })).status, 405)
})

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** The text of some bytes with one bit turned. */
function spoiled(text: string, at = -1): string {
  const bytes = Buffer.from(text, 'base64url')
  const index = at < 0 ? bytes.length + at : at
  bytes[index] = (bytes[index] ?? 0) ^ 1
  return base64url(bytes)
}

t.test('forged chunks of a node are never served', async (t) => {
  const { here, start } = await shared
  const truth = await chunkOf(here.devnet.url, start)
  const elsewhere = await chunkOf(here.devnet.url, start + 262_144)
  const lies: Record<string, object | string> = {
    'another chunk': { ...truth, chunk: elsewhere.chunk },
    'a changed byte': { ...truth, chunk: spoiled(truth.chunk, 5) },
    'a shorter chunk': { ...truth, chunk: base64url(Buffer.from(truth.chunk, 'base64url').subarray(1)) },
    'a true chunk of another place': elsewhere,
    'a changed data path': { ...truth, data_path: spoiled(truth.data_path) },
    'a changed transaction path': { ...truth, tx_path: spoiled(truth.tx_path ?? '') },
    'packed bytes': { ...truth, packing: 'spora_2_6_x' },
    'no JSON': '<html>',
    'no path': { ...truth, data_path: '' },
  }
  for (const [name, lie] of Object.entries(lies)) {
    const liar = await twisted(t, here.devnet.url, (request, response) => {
      if (!request.url?.startsWith('/chunk/')) return false
      response.end(typeof lie === 'string' ? lie : JSON.stringify(lie))
      return true
    })
    const alone = await nodeStage(t, [liar.url])
    const refused = await alone.ask(`/chunk/${start}/data`)
    t.equal(refused.status, 502, name)
    t.equal(refused.headers.signature, undefined)
    const beside = await nodeStage(t, [liar.url, here.devnet.url])
    const served = await beside.ask(`/chunk/${start}/data`)
    t.equal(served.status, 200, `${name}, beside an honest node`)
    t.ok(served.body.equals(data.subarray(0, 262_144)))
  }
})

t.test('forged blocks of a node prove nothing', async (t) => {
  const { here, start } = await shared
  const twists: Record<string, (block: Record<string, unknown>) => object> = {
    'another tx_root': (block) => ({ ...block, tx_root: base64url(randomBytes(32)) }),
    'no tx_root and no transactions': (block) => ({ ...block, tx_root: '', txs: [] }),
    'larger blocks': (block) => ({ ...block, block_size: String(Number(block.block_size) + 262_144) }),
  }
  for (const [name, twist] of Object.entries(twists)) {
    const liar = await twisted(t, here.devnet.url, async (request, response) => {
      if (!request.url?.startsWith('/block/')) return false
      const block = (await (await fetch(here.devnet.url + request.url)).json()) as Record<string, unknown>
      response.end(JSON.stringify(twist(block)))
      return true
    })
    const gateway = await nodeStage(t, [liar.url])
    t.equal((await gateway.ask(`/chunk/${start}`)).status, 502, name)
  }
})

t.test('without a proof for the block the signature of the transaction vouches for its root', async (t) => {
  const { here, id, start } = await shared
  const node = await twisted(t, here.devnet.url, async (request, response) => {
    if (!request.url?.startsWith('/chunk/')) return false
    const { tx_path: _, ...rest } = await chunkOf(here.devnet.url, Number(request.url.slice(7)))
    response.end(JSON.stringify(rest))
    return true
  })
  const gateway = await nodeStage(t, [node.url])
  const raw = await gateway.ask(`/chunk/${start + 524_288}/data`)
  t.equal(raw.status, 200)
  t.ok(raw.body.equals(data.subarray(524_288)))
  t.equal(raw.headers['x-chain-chunk-tx-path'], '')
  t.equal(raw.headers['x-chain-chunk-tx-id'], id)
})

t.test('a node that never answers costs no more than the deadline', async (t) => {
  const { here, start } = await shared
  const silent = await twisted(t, here.devnet.url, (request) => request.url?.startsWith('/chunk/') === true)
  const gateway = await nodeStage(t, [silent.url], { finder: { deadlineMs: 300 } })
  const answer = await gateway.ask(`/chunk/${start}`)
  t.equal(answer.status, 504)
  t.equal(answer.headers['cache-control'], 'no-store')
})

t.test('many who ask for one chunk share the work', async (t) => {
  const { here, start } = await shared
  const node = await twisted(t, here.devnet.url, () => false)
  const gateway = await nodeStage(t, [node.url])
  const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.ask(`/chunk/${start + 9}/data`)))
  t.ok(answers.every(({ status, body }) => status === 200 && body.equals(data.subarray(0, 262_144))))
  t.equal(node.requests.filter((line) => line.startsWith('GET /chunk/')).length, 1)
})

t.test('a client that asks for many chunks at once leaves room for others', async (t) => {
  const { here, start } = await shared
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const node = await twisted(t, here.devnet.url, async ({ url }) => {
    if (url?.startsWith('/chunk/') === true && url !== `/chunk/${start + 9}`) await held
    return false
  })
  const clientOf = (request: Request): string => request.header('x-client') ?? ''
  const finder = { deadlineMs: 100_000, flightsMax: 8 }
  const gateway = await nodeStage(t, [node.url], { clientOf, finder })
  const ask = (offset: number, client: string) =>
    gateway.ask(`/chunk/${offset}/data`, { headers: { 'x-client': client } })
  let refused = 0
  const greedy = Array.from({ length: 20 }, async (_, at) => {
    const { status } = await ask(start + 10 + at, 'greedy')
    if (status === 503) refused += 1
    return status
  })
  await eventually('the flood is refused', () => refused >= 12)
  t.equal((await ask(start + 9, 'modest')).status, 200)
  release()
  const statuses = await Promise.all(greedy)
  t.equal(statuses.filter((status) => status === 200).length, 2, 'a quarter of what is looked for at once')
})

t.test('whatever one character of an answer becomes, the true bytes are served or none', async (t) => {
  const { here, start } = await shared
  const truth = JSON.stringify(await chunkOf(here.devnet.url, start + 524_288))
  let answer = truth
  const liar = await twisted(t, here.devnet.url, (request, response) => {
    if (!request.url?.startsWith('/chunk/')) return false
    response.end(answer)
    return true
  })
  // Nothing is kept: each run proves anew.
  const gateway = await nodeStage(t, [liar.url], { finder: { fetchedCacheBytes: 0, postedCacheBytes: 0 } })
  // Half of the changes hit the proofs behind the chunk.
  const proofs = truth.indexOf('"data_path"')
  const place = fc.oneof(fc.nat(truth.length - 1), fc.integer({ min: proofs, max: truth.length - 1 }))
  const letter = fc.constantFrom(...'AQgwz-_"\\{},: 0')
  let served = 0
  await fc.assert(
    fc.asyncProperty(place, letter, fc.nat(175_711), async (at, other, byte) => {
      answer = truth.slice(0, at) + other + truth.slice(at + 1)
      const { status, body } = await gateway.ask(`/chunk/${start + 524_288 + byte}/data`)
      if (status === 200) served += 1
      return status === 200 ? body.equals(data.subarray(524_288)) : status === 502
    }),
    { numRuns: 200 },
  )
  t.ok(served < 200, 'most changes matter')
})

t.test(
  'where content is blocked, chunks are served by the name of their transaction or not at all',
  async (t) => {
    const { here, id, start } = await shared
    const nameless = await twisted(t, here.devnet.url, (request, response) => {
      const hides = /\/offset$/.test(request.url ?? '')
      if (hides) response.writeHead(404).end('Not Found')
      return hides
    })
    const store = new ModerationStore(`${t.testdir()}/list`)
    const filter = new BlockFilter()
    const keeper = new ModerationKeeper(store, filter, systemClock, silentLog)
    t.teardown(() => keeper.close())
    const list = new FilteredBlockList(filter, store, silentLog)
    const guard = new Guard(list, { attributes: () => undefined }, 100)
    const block = (kind: SubjectKind, key: string): void => {
      keeper.handle({
        kind: 'block',
        subject: { kind, key },
        ground: { source: 'test', notes: '' },
        by: 'test',
      })
    }
    const finder = { deadlineMs: 2000, nameMs: 500 }
    const [named, unnamed] = [
      await nodeStage(t, [here.devnet.url], { guard, finder }),
      await nodeStage(t, [nameless.url], { guard, finder }),
    ]
    const both = async (path: string): Promise<number[]> =>
      Promise.all([named, unnamed].map(async (gateway) => (await gateway.ask(path)).status))
    block('name', 'some-name')
    t.strictSame(await both(`/chunk/${start}`), [200, 200], 'names say nothing of chunks')
    block('id', base64url(randomBytes(32)))
    t.strictSame(await both(`/chunk/${start}`), [200, 503], 'it might be the one')
    block('id', id)
    t.strictSame(await both(`/chunk/${start}/data`), [451, 503])
    t.match(await named.ask(`/chunk/${start}`), {
      headers: { 'cache-control': 'public, max-age=100, immutable' },
    })
  },
)

t.test('a chunk is served as soon as any thread knows its place', async (t) => {
  const here = await weave(t)
  here.devnet.mine(2)
  const tip = new Tip()
  const threads = [
    await nodeStage(t, [here.devnet.url], { tip }),
    await nodeStage(t, [here.devnet.url], { tip }),
  ]
  for (let round = 0; round < 3; round += 1) {
    const length = Number(
      ((await (await fetch(`${here.devnet.url}/block/current`)).json()) as Weight).weave_size,
    )
    // How long the weave is is remembered by both now.
    for (const thread of threads) t.equal((await thread.ask(`/chunk/${length + 1}`)).status, 404)
    const id = await here.post(randomBytes(1000))
    const answer = await threads[0]?.ask(`/tx/${id}/offset`)
    const { offset, size } = JSON.parse(String(answer?.body)) as { offset: string; size: string }
    const start = Number(offset) - Number(size) + 1
    for (const thread of threads) t.equal((await thread.ask(`/chunk/${start}`)).status, 200)
  }
})

interface Weight {
  readonly weave_size: string
}
