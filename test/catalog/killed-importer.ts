/**
 * A process that imports a chain with forks until it is killed. A second start goes on where the index
 * stands.
 */
import { Chain } from '../../bench/index/chain.js'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { blockMessage, filesOnly, itemsMessage } from './index-model.js'
import { killedChain } from './killed-chain.js'

const [, , path = '', how = ''] = process.argv
const flush = { rows: 300, forkDepth: 2, rowsEach: 20, merges: { segmentsAlike: 2, levelMax: 3 } }
const options = { path, touchEveryMs: 0, spill: filesOnly, ...(how === 'flush' ? { flush } : {}) }
const keeper = new CatalogKeeper(options, new Generations(), {
  ...systemClock,
  now: () => 5_000_000,
})
const { blocks } = openIndexTables(openCatalogTables(path).environment)
const known = blocks.count()
process.send?.({ begun: known })
for (const [at, { block, transactions, bundles }] of [...new Chain(killedChain).blocks()].entries()) {
  // A fork now and then: what was just written is unwound and written again.
  const forks = at % 7 === 6 && at >= known
  if (at >= known - 3) {
    await Promise.all([
      keeper.handle(blockMessage(block, transactions)),
      ...bundles.map(({ rootId, items }) => keeper.handle(itemsMessage(rootId, items))),
    ])
  }
  if (forks) {
    await keeper.handle({ kind: 'unwind', fromHeight: block.height })
    await Promise.all([
      keeper.handle(blockMessage(block, transactions)),
      ...bundles.map(({ rootId, items }) => keeper.handle(itemsMessage(rootId, items))),
    ])
  }
}
await keeper.close()
process.send?.({ done: true })
process.exit(0)
