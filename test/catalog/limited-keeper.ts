/**
 * A process whose files may not grow beyond a limit: imports a chain, says each message again that the disk did not take, and has
 * the limit lifted after some refusals. Prints how many there were, and what the index holds in the end.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { Chain } from '../../bench/index/chain.js'
import type { CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { blockMessage, dump, filesOnly, itemsMessage, openHouse } from './index-model.js'

const [, , spill] = process.argv
const refusalsMax = 12
const house = openHouse(spill === 'files' ? filesOnly : undefined)
let refused = 0

async function say(message: CatalogRequest): Promise<void> {
  while (isRefusal(await house.keeper.handle(message))) {
    refused += 1
    if (refused === refusalsMax) execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited'])
  }
}

for (const { block, transactions, bundles } of new Chain({
  items: 1000,
  itemsPerBundle: 50,
  bundlesPerBlock: 3,
  seed: 8,
}).blocks()) {
  await say(blockMessage(block, transactions))
  for (const { rootId, items } of bundles) await say(itemsMessage(rootId, items))
  const digest = createHash('sha256').update(block.id).digest()
  await say({ kind: 'kept', digest, sizeBytes: 5 })
  const known = { id: idOfBytes(digest), size: 5, verified: true, trusted: true, digest }
  await say({ kind: 'learn', attributes: [known] })
}
// Answers that no limit stood in the way of say the same.
house.index.refresh()
const sum = createHash('sha256')
  .update(JSON.stringify(dump(house.tables)))
  .digest('hex')
await house.close()
process.stdout.write(JSON.stringify({ refused, sum }))
