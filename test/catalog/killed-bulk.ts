/**
 * A process that imports a chain in bulk until it is killed. A second start goes on behind the last block of which all was in the
 * index, which stands in a file.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Chain } from '../../bench/index/chain.js'
import { systemClock } from '../../src/actor/clock.js'
import { localAddress } from '../../src/actor/mailbox-address.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { BulkWay } from '../../src/ingest/bulk-way.js'
import { IndexQueue } from '../../src/ingest/index-queue.js'
import { blockMessage, filesOnly, itemsMessage } from './index-model.js'
import { killedChain } from './killed-chain.js'

const [, , path = '', how = ''] = process.argv
const flush = { rows: 300, forkDepth: 2, rowsEach: 20, merges: { segmentsAlike: 2, levelMax: 3 } }
const options = { path, touchEveryMs: 0, spill: filesOnly, flush, bulk: { rows: 500, bytes: 2 ** 24 } }
const generations = new Generations()
const keeper = new CatalogKeeper(options, generations, { ...systemClock, now: () => 5_000_000 })
const index = new ChainIndex(openCatalogTables(path).environment, generations)
const watch = {
  outage: { failed: () => undefined, well: () => undefined },
  refusals: { add: () => undefined },
}
const address = localAddress<CatalogRequest, CatalogReply>((request) => keeper.handle(request))
const stopped = new AbortController().signal
const bulk = new IndexQueue(address, index, stopped, watch, false, new BulkWay())
const tables = new IndexQueue(address, index, stopped, watch, false)

const place = join(path, 'place')
const known = existsSync(place) ? Number(readFileSync(place, 'utf8')) : 0
process.send?.({ begun: known })
for (const [at, { block, transactions, bundles }] of [...new Chain(killedChain).blocks()].entries()) {
  if (at < known) continue
  await bulk.write(() => blockMessage(block, transactions))
  // Some of it comes through the tables, which lists all before it.
  const way = how === 'mixed' && at % 5 === 0 ? tables : bulk
  await Promise.all(bundles.map(({ rootId, items }) => way.write(() => itemsMessage(rootId, items))))
  bulk.whenKept(() => {
    writeFileSync(`${place}.new`, String(at + 1))
    renameSync(`${place}.new`, place)
  })
}
await bulk.keep()
await keeper.close()
process.send?.({ done: true })
process.exit(0)
