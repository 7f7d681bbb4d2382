import { systemClock } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { answer } from '../../actor/mailbox-address.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { BucketKeeper } from '../../admission/bucket-keeper.js'
import { readSecret } from '../../admission/bucket-key.js'
import type { KeeperReply, KeeperRequest } from '../../admission/bucket-messages.js'
import { BucketRefill } from '../../admission/bucket-refill.js'
import { KeptTable } from '../../admission/kept-table.js'
import type { AdmissionThread } from '../../admission/open-buckets.js'
import { bucketRules } from '../client-options.js'
import type { SettingsNews } from '../thread-news.js'

/** The keeper of buckets: up as soon as what the disk holds is in the memory that all threads share. */
export function openAdmission({ place, keeper: about, logLevel }: AdmissionThread): OpenThread {
  const tables = {
    ip: new KeptTable(place.ipMemory, place.ip),
    resource: new KeptTable(place.resourceMemory, place.resource),
  }
  const rulesOf = (news: unknown): ReturnType<typeof bucketRules> =>
    bucketRules((news as SettingsNews<'admission'>).settings)
  if (place.redis !== undefined) {
    const refill = new BucketRefill(tables, systemClock)
    return {
      ready: { secret: readSecret() },
      onMessage: (news) => refill.use(rulesOf(news)),
      close: async () => refill.close(),
    }
  }
  const keeper = new BucketKeeper(about, tables, systemClock, createLog(logLevel, 'admission'))
  return {
    ready: { secret: keeper.secret },
    connect: (port) => answer<KeeperRequest, KeeperReply>(port, (message) => keeper.handle(message)),
    onMessage: (news) => keeper.use(rulesOf(news)),
    close: async () => keeper.close(),
  }
}
