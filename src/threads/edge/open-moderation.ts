import { systemClock } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { answer } from '../../actor/mailbox-address.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { Generations } from '../../catalog/generations.js'
import { LmdbCatalog } from '../../catalog/reader.js'
import { BlockFilter } from '../../moderation/block-filter.js'
import { ModerationKeeper } from '../../moderation/moderation-keeper.js'
import type { ModerationReply, ModerationRequest } from '../../moderation/moderation-messages.js'
import { ModerationStore } from '../../moderation/moderation-store.js'
import type { ModerationThread } from '../../moderation/moderation-thread.js'

/** The block list's keeper: up as soon as the list on disk is in the filter that all threads share. */
export function openModeration(given: ModerationThread): OpenThread {
  const log = createLog(given.logLevel, 'moderation')
  const store = new ModerationStore(given.path)
  const catalog = new LmdbCatalog(given.catalogPath, new Generations(given.generations))
  const keeper = new ModerationKeeper(store, new BlockFilter(given.filter), systemClock, log, (digest) =>
    catalog.blobSize(digest),
  )
  return {
    connect: (port) => answer<ModerationRequest, ModerationReply>(port, (message) => keeper.handle(message)),
    close: () => Promise.all([keeper.close(), catalog.close()]),
  }
}
