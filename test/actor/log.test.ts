import t from 'tap'
import { createLog, logToFile } from '../../src/actor/log.js'

t.test('a log that its disk does not take ends nobody', async (t) => {
  // Each write there says ENOSPC.
  logToFile('/dev/full')
  const log = createLog('info', 'a thread')
  for (let at = 0; at < 100; at += 1) t.doesNotThrow(() => log.error({ at }, 'the disk is full'))
})
