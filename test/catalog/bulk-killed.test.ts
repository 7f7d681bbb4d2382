import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { scratch } from '../scratch.js'
import { dump } from './index-model.js'
import { killAgain, neverKilled } from './killed-again.js'
import { killedChain } from './killed-chain.js'

const importer = fileURLToPath(new URL('./killed-bulk.js', import.meta.url))

for (const how of ['bulk', 'mixed']) {
  t.test(`an import in bulk that is killed again and again loses nothing: ${how}`, async (t) => {
    const path = scratch(`killed-${how}`)
    await killAgain(importer, [path, how], { max: 10, stepMs: 25 }, (problems, kills) =>
      t.same(problems, [], `after kill ${kills}`),
    )
    const whole = await neverKilled()
    const { environment } = openCatalogTables(path)
    const tables = openIndexTables(environment)
    t.ok(tables.segments.all().length > 0)
    t.ok(tables.segments.count() > (killedChain.items * 5) / 6, 'most rows never were in the tables')
    t.same(dump(tables), dump(whole.tables))
    await environment.close()
    await whole.close()
  })
}
