/** Orders of an operator about what is not there any more. */
import t from 'tap'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { type DeskParts, UploadsDesk } from '../../src/upload/uploads-desk.js'
import { rigOf } from './bundling/bundler-rig.js'

t.test('an item that was let go is not packed again', async (t) => {
  const { uploads, bundles, bundler, clock, accept } = await rigOf(t)
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const chain = { balance: async () => 1n }
  const parts = { uploads, bundles, bundler, clock, meters, chain, address: 'a', partsMaxBytes: 1 }
  const desk = new UploadsDesk(parts as unknown as DeskParts)
  t.teardown(() => desk.close())
  const id = accept('one')
  const item = uploads.find(id)
  if (item === undefined) throw new Error('it was not accepted')
  uploads.environment.write(() => uploads.letGo(item, 'its time is over'))
  t.match(await desk.repack(id), { refused: /not kept/ })
  t.match(uploads.find(id), { released: true, reason: 'its time is over' })
  t.equal(uploads.waiting, 0)
})
