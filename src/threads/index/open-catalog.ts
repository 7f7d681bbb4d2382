import { systemClock } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { answer } from '../../actor/mailbox-address.js'
import { ranks, stepBack } from '../../actor/priority.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { CatalogKeeper } from '../../catalog/catalog-keeper.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import type { CatalogThread } from '../../catalog/catalog-thread.js'
import { Generations } from '../../catalog/generations.js'

/** The catalog's keeper: the one writer of the index environment. */
export function openCatalog({ keeper: about, generations, logLevel, isBeside }: CatalogThread): OpenThread {
  const log = createLog(logLevel, 'catalog')
  if (isBeside) stepBack(ranks.keeper, log)
  const keeper = new CatalogKeeper(about, new Generations(generations), systemClock, log)
  return {
    connect: (port) => answer<CatalogRequest, CatalogReply>(port, (message) => keeper.handle(message)),
    close: () => keeper.close(),
  }
}
