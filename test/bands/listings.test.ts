import { constants } from 'node:os'
import t from 'tap'
import { silentLog } from '../../src/actor/log.js'
import { Listings, type ListingsParts } from '../../src/bands/listings.js'
import { refuse } from '../../src/format/refusal.js'
import { diskError } from '../../src/store/disk-error.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../names/hand-clock.js'

t.test('a disk that takes no list of bands is tried again with the next look', async (t) => {
  const clock = new HandClock()
  const parts = {
    state: { seen: new Map() },
    keys: { of: async () => refuse('upstream', 'upstream', 'nobody answers') },
    clock,
    log: silentLog,
  } as unknown as ListingsParts
  const end = new AbortController()
  const listings = new Listings([{ url: 'http://127.0.0.1:1', keyId: 'a key' }], parts, end.signal)
  let looks = 0
  const failed: unknown[] = []
  listings.start(
    1000,
    async () => {
      looks += 1
      if (looks < 3) throw diskError(constants.errno.ENOSPC, 'a test')
      if (looks === 4) throw new TypeError('a bug')
    },
    (error) => failed.push(error),
  )
  for (let wanted = 1; wanted <= 4; wanted += 1) {
    await eventually('the listings were read', () => looks === wanted && (wanted < 4 || failed.length > 0))
    t.equal(failed.length, looks === 4 ? 1 : 0)
    await clock.turn(1000)
  }
  await eventually('one listing failed', () => failed.length === 1)
  end.abort()
  await listings.stop()
})
