import { fork as spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { checkIndex } from '../../src/catalog/index-check.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { random } from '../property.js'
import { folder, house } from './house.js'
import { rebuilt, settled, town } from './town.js'

const child = fileURLToPath(new URL('./killed-ingest.js', import.meta.url))
/** More of them with KILLS=100. */
const kills = Number(process.env.KILLS ?? 12)

t.test('killed at any moment of an import, the index is whole, and ends the same', async (t) => {
  const { devnet, bundle, fork } = await town(t)
  const path = folder(t)
  let rows = 0
  for (let round = 0; round < kills; round += 1) {
    await bundle(10)
    devnet.mine(8)
    if (round % 3 === 2) fork(6)
    const process = spawn(child, [path, devnet.url], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const gone = once(process, 'exit')
    await once(process, 'message')
    await new Promise((resolve) => setTimeout(resolve, random() * 60))
    process.kill('SIGKILL')
    t.equal((await gone)[1], 'SIGKILL')
    const { environment } = openCatalogTables(join(path, 'catalog'))
    const report = checkIndex(openIndexTables(environment))
    await environment.close()
    rows = report.rows
    t.same(report.problems, [], `${rows} rows, ${report.blocks} blocks`)
  }
  const on = house(t, devnet.url, {}, { path })
  await settled(on, devnet)
  t.same(on.check().problems, [])
  t.same(on.dump(), await rebuilt(t, devnet))
})
