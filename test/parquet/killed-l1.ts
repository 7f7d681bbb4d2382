/** A process that imports the bands in a folder in bulk until it is killed. A second start goes on where the index stands. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { localAddress } from '../../src/actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { isRefusal } from '../../src/format/refusal.js'
import { BulkWay } from '../../src/ingest/bulk-way.js'
import { IndexQueue } from '../../src/ingest/index-queue.js'
import { readL1Band } from '../../src/parquet/l1-band.js'
import { importL1 } from '../../src/parquet/l1-import.js'
import { openL1House } from './l1-chain.js'
import { targetOf } from './l1-target.js'

const [, , catalog = '', bands = ''] = process.argv
const house = openL1House(catalog, { rows: 40, bytes: 2 ** 24 })
const address = localAddress<CatalogRequest, CatalogReply>((request) => house.keeper.handle(request))
const watch = {
  outage: { failed: () => undefined, well: () => undefined },
  refusals: { add: () => undefined },
}
const queue = new IndexQueue(address, house.index, new AbortController().signal, watch, false, new BulkWay())
const target = targetOf(house, {
  keep: () => queue.keep(),
  async write(request) {
    await queue.write(() => request)
  },
})
process.send?.({ begun: house.index.topHeight() ?? -1 })
for (const name of readdirSync(bands).sort()) {
  const band = await readL1Band(join(bands, name))
  if (isRefusal(band)) throw new Error(band.message)
  const refusal = await importL1(join(bands, name), band, target)
  if (refusal !== undefined) throw new Error(refusal.message)
}
await house.close()
