import type { Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Guard } from '../../src/gateway/guard.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { scratch } from '../scratch.js'
import { stage } from './rig.js'

/** A gateway whose block list `keeper` writes. */
export async function withBlockList(t: Test) {
  const store = new ModerationStore(`${scratch('block-list')}/list`)
  const filter = new BlockFilter()
  const keeper = new ModerationKeeper(store, filter, systemClock, silentLog)
  const list = new FilteredBlockList(filter, store, silentLog)
  const guard = new Guard(list, { attributes: () => undefined }, 100)
  const on = await stage({ parts: { guard }, forbidden: list })
  t.teardown(async () => {
    await on.close()
    await keeper.close()
  })
  return { on, keeper }
}
