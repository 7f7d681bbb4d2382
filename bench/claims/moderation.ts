/** The block list with a million ids: what a check costs on an edge thread. `node dist/bench/claims/moderation.js [ENTRIES]` */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { countFromCommandLine } from '../kit/counts.js'
import { say } from '../kit/say.js'

const entries = countFromCommandLine(
  'moderation [ENTRIES]: what a check against the block list costs (1000000 entries)',
  1_000_000,
)
const path = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const someId = (): Id => idOfBytes(randomBytes(32))

/** Nanoseconds of one call, the best of five rounds: because other programs use this machine. */
function cost(count: number, act: (at: number) => unknown): string {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round += 1) {
    const since = systemClock.monotonic()
    for (let at = 0; at < count; at += 1) act(at)
    best = Math.min(best, ((systemClock.monotonic() - since) * 1e6) / count)
  }
  return `${Math.round(best)} ns`
}

const store = new ModerationStore(join(path, 'list'))
const blocked: Id[] = []
let since = systemClock.monotonic()
for (let left = entries; left > 0; left -= 5000) {
  const batch = Array.from({ length: Math.min(left, 5000) }, someId)
  if (blocked.length < 10_000) blocked.push(...batch)
  store.block(
    batch.map((key) => ({ kind: 'id', key })),
    { source: 'bench', notes: '' },
    1,
  )
}
say(`${entries} ids written in ${Math.round(systemClock.monotonic() - since)} ms, each commit on the disk`)
since = systemClock.monotonic()
const filter = new BlockFilter()
const keeper = new ModerationKeeper(store, filter, systemClock, silentLog)
say(`taken over at the start in ${Math.round(systemClock.monotonic() - since)} ms`)
const list = new FilteredBlockList(filter, store, silentLog)
const empty = new BlockFilter()
empty.fill()
const nothing = new FilteredBlockList(empty, store, silentLog)

const strangers = Array.from({ length: 100_000 }, someId)
const digests = strangers.map((id) => Buffer.from(id, 'base64url'))
say(`an id, nothing blocked:    ${cost(strangers.length, (at) => nothing.blocksId(strangers[at]!))}`)
say(`an id that is not blocked: ${cost(strangers.length, (at) => list.blocksId(strangers[at]!))}`)
say(
  `an item, root and parent:  ${cost(50_000, (at) => list.blocksId(strangers[at]!, [strangers[99_999 - at]!]))}`,
)
say(`a digest:                  ${cost(digests.length, (at) => list.blocksDigest(digests[at]!))}`)
say(`a name:                    ${cost(digests.length, (at) => list.blocksName(`name-${at}`))}`)
say(`an id that is blocked:     ${cost(blocked.length, (at) => list.blocksId(blocked[at]!))}`)
const through = strangers.filter((id) => filter.mayHoldId(id)).length
say(`looked up for nothing:     ${through} of ${strangers.length}`)
await keeper.close()
rmSync(path, { recursive: true })
