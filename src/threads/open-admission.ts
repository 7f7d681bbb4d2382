import { systemClock } from '../actor/clock.js'
import { createLog } from '../actor/log.js'
import { answer } from '../actor/mailbox-address.js'
import type { OpenThread } from '../actor/run-thread.js'
import { BucketKeeper } from '../admission/bucket-keeper.js'
import type { KeeperReply, KeeperRequest } from '../admission/bucket-messages.js'
import { KeptTable } from '../admission/kept-table.js'
import type { AdmissionThread } from '../admission/open-buckets.js'
import { bucketRules } from './client-options.js'
import type { SettingsNews } from './thread-news.js'

/** The keeper of buckets: up as soon as what the disk holds is in the memory that all threads share. */
export function openAdmission({ place, keeper: about, logLevel }: AdmissionThread): OpenThread {
  // Where the buckets are in Redis, the hash is not used, so its key does not matter.
  if (place.kind === 'redis')
    return { ready: { secret: { low: 0, high: 0 } }, close: () => Promise.resolve() }
  const tables = {
    ip: new KeptTable(place.ipMemory, place.ip),
    resource: new KeptTable(place.resourceMemory, place.resource),
  }
  const keeper = new BucketKeeper(about, tables, systemClock, createLog(logLevel, 'admission'))
  return {
    ready: { secret: keeper.secret },
    connect: (port) => answer<KeeperRequest, KeeperReply>(port, (message) => keeper.handle(message)),
    onMessage: (news) => keeper.use(bucketRules((news as SettingsNews<'admission'>).settings)),
    close: async () => keeper.close(),
  }
}
