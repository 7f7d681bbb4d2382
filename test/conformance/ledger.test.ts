import { join } from 'node:path'
import t from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { headKey } from '../../src/ledger/head-key.js'
import { ledgerConformance } from './ledger.js'

t.test('embedded', (t) => {
  const root = t.testdir()
  let nowMs = 1_000_000
  // The time stands still but for `setTime`: what passes while the machine is busy must not end anything.
  const clock: Clock = { ...systemClock, now: () => nowMs, monotonic: () => nowMs }
  ledgerConformance(t, {
    open: async (place) =>
      new EmbeddedLedger({ path: join(root, place), clock, key: headKey(join(root, 'key.pem')) }),
    setTime: (ms) => {
      nowMs = ms
    },
  })
  t.end()
})
