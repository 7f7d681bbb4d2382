/** Items with as many tags as they may have: what reads the whole index has few of these tags in memory, or none. */
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { localAddress } from '../../src/actor/mailbox-address.js'
import { BandStore } from '../../src/bands/band-store.js'
import { RootBuilder } from '../../src/bands/root-builder.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import type { Effort } from '../../src/catalog/effort.js'
import { Generations } from '../../src/catalog/generations.js'
import type { ItemInput } from '../../src/catalog/index-protocol.js'
import { ChainIndex, type Page, type PageRequest } from '../../src/catalog/index-reader.js'
import { type Row, tagBytesOf } from '../../src/catalog/row.js'
import type { Selection } from '../../src/catalog/selection.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { idOfBytes } from '../../src/format/id.js'
import { IndexQueue } from '../../src/ingest/index-queue.js'
import { Pruner } from '../../src/ingest/prune.js'
import { exportParquet } from '../../src/parquet/export.js'
import { order } from '../parquet/export-rig.js'
import { bytesOf, idText } from '../query/many-segments.js'
import { scratch } from '../scratch.js'
import { blockMessage, earlyFlush, itemsMessage, openHouse } from './index-model.js'

const heights = 30
const tagsEach = 128
const valueBytes = 3000
/** What a step may have in memory: a bound of 4 MiB, and one item more. */
const boundBytes = 4 * 2 ** 20 + tagsEach * (valueBytes + 100)

const none = Buffer.alloc(0)
const common = {
  size: 1,
  owner: Buffer.alloc(32, 1),
  ownerAddress: bytesOf('owner'),
  target: none,
  anchor: none,
}

/** The index, and the most bytes of tags that it gave in one piece. */
class Watched extends ChainIndex {
  most = 0

  override rows(wanted: Selection, request: PageRequest, effort: Effort): Page<Row> {
    const page = super.rows(wanted, request, effort)
    const bytes = page.entries.reduce((sum, row) => sum + tagBytesOf(row), 0)
    this.most = Math.max(this.most, bytes)
    return page
  }
}

/** In each block a bundle with one item, which has as many tags as an item may have. */
const requests = Array.from({ length: heights }, (_, height) => {
  const block = { height, id: idText(height), previous: idText(height - 1), timestamp: 1_700_000_000 }
  const amounts = { format: 2, quantity: 0n, reward: 0n, dataRoot: none, weaveEnd: 0 }
  const id = idOfBytes(bytesOf(`root ${height}`))
  const item: ItemInput = {
    ...common,
    id: idOfBytes(bytesOf(`item ${height}`)),
    tags: Array.from({ length: tagsEach }, (_, at) => ({
      name: Buffer.from(`t${at}`),
      value: Buffer.from(`${height} ${at} ${'v'.repeat(valueBytes)}`),
    })),
    signatureType: 2,
    parentId: id,
    rootItemOffset: 100,
    parentItemOffset: 100,
    headerSize: 10,
  }
  return [
    blockMessage({ ...block, weaveSize: '0', transactionCount: 1 }, [
      { ...common, ...amounts, id, index: 0, tags: [] },
    ]),
    itemsMessage(id, [item]),
  ]
}).flat()

/** All of the index, part by part. */
function parts(index: ChainIndex, takesTags: boolean): Row[][] {
  const all: Row[][] = []
  for (let after: Uint8Array | undefined; ; ) {
    const found = index.stretch(0, heights, after, 1000, takesTags)
    after = found.at(-1)?.key
    if (after === undefined) return all
    all.push(found)
  }
}

for (const [where, flush] of [
  ['the tables', undefined],
  ['segments', earlyFlush],
] as const) {
  t.test(`in ${where}: bands, exports and prunings`, async (t) => {
    const house = openHouse(undefined, undefined, flush)
    await house.apply(requests)
    const { environment } = openCatalogTables(house.path)
    t.teardown(async () => {
      await environment.close()
      await house.close()
    })
    const index = new Watched(environment, new Generations())
    index.refresh()

    const whole = parts(index, true)
    t.ok(whole.length > 1, `${whole.length} parts`)
    t.equal(new Set(whole.flat().map(({ id }) => Buffer.from(id).toString('hex'))).size, 2 * heights)
    t.equal(whole.flat().length, 2 * heights, 'each row once')
    t.ok(index.most <= boundBytes, `${index.most} bytes of tags in one part`)
    index.most = 0
    t.same(
      parts(index, false).map(({ length }) => length),
      [2 * heights],
      'rows without tags are in one part',
    )
    t.equal(index.most, 0)

    const folder = scratch('stretch')
    const bandStore = new BandStore(join(folder, 'bands'))
    await bandStore.prepare()
    const hour = 3_600_000
    const building = { publisher: 'somebody', historyBlocks: 100, recentEveryMs: hour, deltaEveryMs: hour }
    const builder = new RootBuilder(bandStore, index, systemClock, silentLog, { ...building, forkDepth: 5 })
    t.not((await builder.build(true)).length, 0)
    t.equal(index.most, 0, 'a band needs no tags')

    const { signal } = new AbortController()
    const keeper = localAddress<CatalogRequest, CatalogReply>((message) => house.keeper.handle(message))
    const watch = {
      outage: { failed: () => undefined, well: () => undefined },
      refusals: { add: () => undefined },
    }
    const progress = { height: undefined, files: 0, rows: { blocks: 0, transactions: 0, tags: 0 } }
    const given = { folder: join(folder, 'parquet'), jobId: 'job', lastHeight: heights }
    await exportParquet(index, given, order, progress, signal)
    t.same(progress.rows, { blocks: heights, transactions: 2 * heights, tags: heights * tagsEach })
    t.ok(index.most > 0 && index.most <= boundBytes, `${index.most} bytes of tags in one page`)

    index.most = 0
    const pruner = new Pruner(new IndexQueue(keeper, index, signal, watch), 0, signal)
    t.equal(await pruner.prune({ from: 0, to: heights, beforeSeconds: 2 ** 31 }), heights)
    t.equal(index.most, 0, 'a pruning needs no tags')
  })
}
