/** Chunks of transactions that the index knows: named, with every proof, of both formats. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Tip } from '../../src/actor/shared.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { packTransactions } from '../../src/catalog/pack.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { IndexedSpans } from '../../src/chain/indexed-spans.js'
import { type Id, idBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { parseTransaction, type Transaction } from '../../src/format/transaction.js'
import { Guard } from '../../src/gateway/guard.js'
import { blockInput, transactionInput } from '../../src/ingest/chain-rows.js'
import { Supply } from '../../src/ingest/supply.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { provenTree } from '../../src/proof/block-tree.js'
import { dataTree } from '../../src/proof/data-root.js'
import { transactionDataRoot } from '../../src/proof/transaction-proof.js'
import { postedBy, postedOld } from '../devnet/posting.js'
import { fixtureJson, fixtureLines, sound } from '../fixture-file.js'
import { folder } from '../ingest/house.js'
import { type Weave, weave } from '../source/weave.js'
import { type ChunkJson, chunkOf, nodeStage, twisted } from './node-rig.js'

const none = new Uint8Array(0)

/** A block with transactions of both formats, as the fixture has it. */
interface MixedBlock {
  readonly height: number
  readonly indep_hash: string
  readonly weave_size: string
  readonly block_size: string
  readonly tx_root: string
  readonly txs: readonly string[]
}

/** Both formats in one block, with more blocks on top. */
async function chain(): Promise<{ here: Weave; old: Id; young: Id; data: Buffer }> {
  const here = await weave(t)
  const data = randomBytes(600_000)
  const young = await postedBy(here.payer, randomBytes(300_000))
  await postedBy(here.payer, randomBytes(1000))
  const old = await postedOld(here.payer, here.devnet.url, data)
  here.devnet.mine(60)
  return { here, old, young, data }
}

/** One for all tests: making its owner's key takes seconds. */
const shared = chain()

function emptyIndex(t: Test) {
  const path = join(folder(t), 'catalog')
  const generations = new Generations()
  const keeper = new CatalogKeeper({ path, touchEveryMs: 0 }, generations, systemClock)
  const { environment } = openCatalogTables(path)
  const tip = new Tip()
  const index = new ChainIndex(environment, generations)
  t.teardown(async () => {
    await environment.close()
    await keeper.close()
  })
  return { keeper, tip, index, spans: new IndexedSpans(index, tip, 18) }
}

/** An index of this chain; `rootless`: as older versions wrote it, without roots of format 1. */
async function indexOf(t: Test, { chain, devnet }: Weave, rootless: boolean): Promise<IndexedSpans> {
  const { keeper, tip, spans } = emptyIndex(t)
  const supply = new Supply(chain, 4, 10)
  const height = Number(await (await fetch(`${devnet.url}/height`)).text())
  for (let at = 0; at <= height; at += 1) {
    const brought = await supply.take(at, height)
    if (isRefusal(brought)) throw new Error(brought.message)
    const rows = brought.transactions.map((one) => {
      const isBare = rootless && one.transaction.format === 1
      return transactionInput(isBare ? { ...one, treeRoot: none } : one)
    })
    const block = blockInput(brought.block)
    await keeper.handle({ kind: 'index-block', block, transactions: packTransactions(rows) })
  }
  tip.move(height)
  return spans
}

/** A guard of an operator who blocks something else: chunks must have names now. */
function wary(t: Test): Guard {
  const store = new ModerationStore(join(folder(t), 'list'))
  const filter = new BlockFilter()
  const keeper = new ModerationKeeper(store, filter, systemClock, silentLog)
  t.teardown(() => keeper.close())
  const subject = { kind: 'id', key: randomBytes(32).toString('base64url') } as const
  keeper.handle({ kind: 'block', subject, ground: { source: 'test', notes: '' }, by: 'test' })
  return new Guard(new FilteredBlockList(filter, store, silentLog), { attributes: () => undefined }, 100)
}

async function startOf({ chain }: Weave, id: Id): Promise<number> {
  const place = await chain.transactionOffset(id)
  if (isRefusal(place)) throw new Error(place.message)
  return place.start
}

for (const known of ['with its root', 'without its root', 'not at all'] as const) {
  t.test(`chunks of a format-1 transaction that is indexed ${known} are named and proven`, async (t) => {
    const { here, old, data } = await shared
    const node = await twisted(t, here.devnet.url, () => false)
    const index = known === 'not at all' ? undefined : await indexOf(t, here, known === 'without its root')
    const gateway = await nodeStage(t, [node.url], {
      guard: wary(t),
      ...(index === undefined ? {} : { index }),
    })
    const start = await startOf(here, old)
    for (const at of [0, 262_144, 524_288]) {
      const raw = await gateway.ask(`/chunk/${start + at}/data`)
      t.equal(raw.status, 200)
      t.ok(raw.body.equals(data.subarray(at, at + 262_144)))
      t.equal(raw.headers['x-chain-chunk-tx-id'], old)
      const stated = await chunkOf(here.devnet.url, start + at)
      t.equal(raw.headers['x-chain-chunk-tx-path'], stated.tx_path)
      t.same(JSON.parse((await gateway.ask(`/chunk/${start + at}`)).body.toString()), stated)
    }
    const chunks = node.requests.filter((one) => one.startsWith('GET /chunk/'))
    t.equal(chunks.length, 3, 'the honest node was believed at once')
  })
}

t.test('where nodes give no tx_path it is built from the block', async (t) => {
  const { here, old, young } = await shared
  const node = await twisted(t, here.devnet.url, async (request, response) => {
    if (!request.url?.startsWith('/chunk/')) return false
    const { tx_path: _, ...rest } = await chunkOf(here.devnet.url, Number(request.url.slice(7)))
    response.end(JSON.stringify(rest))
    return true
  })
  const gateway = await nodeStage(t, [node.url], { index: await indexOf(t, here, false) })
  for (const id of [old, young]) {
    const start = await startOf(here, id)
    const stated = await chunkOf(here.devnet.url, start)
    const json = JSON.parse((await gateway.ask(`/chunk/${start}`)).body.toString()) as ChunkJson
    t.equal(json.tx_path, stated.tx_path)
    t.equal((await gateway.ask(`/chunk/${start}/data`)).headers['x-chain-chunk-tx-path'], stated.tx_path)
  }
})

t.test('where the block cannot be built and one node gives no tx_path another one is asked', async (t) => {
  const { here, old } = await shared
  let isFirst = true
  const node = await twisted(t, here.devnet.url, async (request, response) => {
    if (!request.url?.startsWith('/chunk/') || !isFirst) return false
    isFirst = false
    const { tx_path: _, ...rest } = await chunkOf(here.devnet.url, Number(request.url.slice(7)))
    response.end(JSON.stringify(rest))
    return true
  })
  const gateway = await nodeStage(t, [node.url], { index: await indexOf(t, here, true) })
  const start = await startOf(here, old)
  const json = JSON.parse((await gateway.ask(`/chunk/${start}`)).body.toString()) as ChunkJson
  t.equal(json.tx_path, (await chunkOf(here.devnet.url, start)).tx_path)
})

t.test('real format-1 transactions keep the roots that their blocks have', async (t) => {
  const { keeper, index, spans } = emptyIndex(t)
  const transactions = fixtureLines('transactions.ndjson').map((json) => sound(parseTransaction(json)))
  const indexed = async (
    named: { height: number; id: string; weaveSize: string },
    list: readonly Transaction[],
  ): Promise<void> => {
    const rows = list.map((transaction, index) => {
      return transactionInput({ transaction, treeRoot: transactionDataRoot(transaction), index, weaveEnd: 0 })
    })
    const block = { ...named, previous: '', timestamp: 0, transactionCount: rows.length }
    await keeper.handle({ kind: 'index-block', block, transactions: packTransactions(rows) })
    index.refresh()
  }
  const mixed = fixtureJson<MixedBlock[]>('tx-roots.json').find(({ height }) => height === 552_190)
  if (mixed === undefined) throw new Error('the fixture lacks a block')
  const genesis = transactions.filter(({ format, id }) => format === 1 && !mixed.txs.includes(id))
  const first = '7wIU7KolICAjClMlcZ38LZzshhI7xGkm2tDCJR7Wvhe3ESUo2-Z4-y0x1uaglRJE'
  await indexed({ height: 0, id: first, weaveSize: '0' }, genesis)
  t.equal(genesis.length, 314)
  for (const { id, data } of genesis) {
    if (data.length === 0) continue
    // All are smaller than one chunk: then both ways to cut are the same.
    t.same(index.row(idBytes(id))?.transfer?.dataRoot, Buffer.from(dataTree(data).root))
  }

  const own = mixed.txs.map((id) => transactions.find((one) => one.id === id) as Transaction)
  await indexed({ height: 552_190, id: mixed.indep_hash, weaveSize: mixed.weave_size }, own)
  const leaves = spans.transactions(552_190) ?? []
  t.equal(leaves.filter(({ format }) => format === 1).length, 2)
  const txRoot = Buffer.from(mixed.tx_root, 'base64url')
  t.ok(provenTree(leaves, { txRoot, sizeBytes: Number(mixed.block_size) }), 'they have its tx_root')
})
