/** A command that cannot open the catalog leaves the data folder to others. */
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../config/read.js'
import { tryClaimFolder } from '../../src/actor/claim.js'
import { silentLog } from '../../src/actor/log.js'
import { openCatalogAtRest } from '../../src/main/catalog-at-rest.js'

t.test('what is claimed is given back, also where the catalog cannot be opened', async (t) => {
  const folder = t.testdir({ broken: { catalog: 'no folder' }, sound: {} })
  const opened = (name: string): ReturnType<typeof openCatalogAtRest> => {
    const config = readConfig({}, { DATA_PATH: join(folder, name) })
    if (Array.isArray(config)) throw new Error(config.join())
    return openCatalogAtRest(config, silentLog)
  }
  await t.rejects(opened('broken'))
  const claim = await tryClaimFolder(join(folder, 'broken'))
  t.ok(claim)
  await claim?.release()

  const sound = await opened('sound')
  t.equal(await tryClaimFolder(join(folder, 'sound')), undefined)
  await sound.close()
  const again = await tryClaimFolder(join(folder, 'sound'))
  t.ok(again)
  await again?.release()
})
