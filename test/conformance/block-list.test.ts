import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { conform } from './block-list.js'

t.test('the filter with the list on disk behind it', async (t) => {
  const path = t.testdir()
  const open: (() => Promise<void>)[] = []
  let folders = 0
  await conform(t, () => {
    folders += 1
    const writing = new ModerationStore(`${path}/${folders}`)
    const reading = new ModerationStore(`${path}/${folders}`)
    const filter = new BlockFilter()
    const keeper = new ModerationKeeper(writing, filter, systemClock, silentLog)
    open.push(async () => {
      await keeper.close()
      await reading.close()
    })
    return {
      list: new FilteredBlockList(new BlockFilter(filter.memory), reading, silentLog),
      block: (subject) => {
        keeper.handle({ kind: 'block', subject, ground: { source: 'test', notes: '' }, by: 'test' })
      },
      release: (subject) => {
        keeper.handle({ kind: 'release', subject, by: 'test' })
      },
    }
  })
  await Promise.all(open.map((close) => close()))
})
