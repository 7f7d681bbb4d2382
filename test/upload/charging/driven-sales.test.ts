/** Sales whose clients have left are continued: each of them, whatever payment it waits for. */

import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { OpenSales } from '../../../src/upload/charging/open-sales.js'
import { type Sale, Sales } from '../../../src/upload/charging/sales.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import { textAnswer } from '../../../src/upload/requests/upload-answers.js'
import { eventually } from '../../eventually.js'
import { someId } from '../../source/rig.js'

t.test('two items that wait for one payment are both continued', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const sales = new Sales(environment)
  const items = [someId(), someId()]
  for (const itemId of items)
    sales.begin({ payment: 'one', request: itemId, itemId, units: '1', bytes: 1, openedMs: 1 } as Sale)
  const log = { folder: '', release: () => undefined }
  const open = new OpenSales({ sales, itemLog: log, clock: systemClock, logger: silentLog })
  const tried = new Set<string>()
  const closing = new AbortController()
  const driving = open.drive(async ({ itemId }) => {
    tried.add(itemId)
    return textAnswer(503, 'it is not decided')
  }, closing.signal)
  await eventually('both are tried', () => tried.size === 2)
  closing.abort()
  await driving
})
