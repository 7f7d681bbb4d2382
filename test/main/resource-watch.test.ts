import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { Generations } from '../../src/catalog/generations.js'
import { ResourceWatch } from '../../src/main/resource-watch.js'
import { HandClock } from '../names/hand-clock.js'

t.test('free disk and open files are shown; that a folder cannot be looked at is said once', async (t) => {
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const warnings: unknown[] = []
  const log = { warn: (about: unknown) => void warnings.push(about), error: () => t.fail() }
  const folder = t.testdir()
  const watch = new ResourceWatch(folder, meters, log, new HandClock(), new Generations())
  await watch.look()
  watch.close()
  const { blocks, bsize } = await statfs(folder)
  t.equal(meters.total('data_disk_size_bytes'), blocks * bsize)
  t.ok(meters.total('data_disk_free_bytes') <= blocks * bsize)
  t.ok(meters.total('process_open_fds') > 3)
  t.same(warnings, [])
  const other = new ResourceWatch(join(folder, 'none'), meters, log, new HandClock(), new Generations())
  await other.look()
  await other.look()
  other.close()
  t.equal(warnings.length, 1)
})

t.test('a damaged catalog is shown and said once', async (t) => {
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const warnings: unknown[] = []
  const log = { warn: () => t.fail(), error: (_about: object, words?: string) => void warnings.push(words) }
  const catalog = new Generations()
  const watch = new ResourceWatch(t.testdir(), meters, log, new HandClock(), catalog)
  t.teardown(() => watch.close())
  await watch.look()
  t.equal(meters.total('catalog_damaged'), 0)
  t.same(warnings, [])
  catalog.reportDamage()
  await watch.look()
  await watch.look()
  t.equal(meters.total('catalog_damaged'), 1)
  t.equal(warnings.length, 1)
  t.match(warnings[0], 'A database is broken')
})
