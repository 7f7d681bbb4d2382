import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { pause } from '../../src/actor/clock.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { scratch } from '../scratch.js'
import { blockMessage, dump, itemsMessage, openHouse } from './index-model.js'
import { killedChain } from './killed-chain.js'

const importer = fileURLToPath(new URL('./killed-bulk.js', import.meta.url))
const killsMax = 10

/** The made-up owners of the bench have addresses of their own. */
const sound = (problems: readonly string[]): string[] =>
  problems.filter((problem) => !problem.startsWith("the owner's key"))

for (const how of ['bulk', 'mixed']) {
  t.test(`an import in bulk that is killed again and again loses nothing: ${how}`, async (t) => {
    const path = scratch(`killed-${how}`)
    for (let kills = 0, done = false; !done; kills += 1) {
      const child = fork(importer, [path, how], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      const ended = once(child, 'exit')
      await once(child, 'message')
      if (kills < killsMax) await Promise.race([ended, pause(10 + 25 * kills)])
      else await ended
      done = child.exitCode === 0
      if (!done) {
        child.kill('SIGKILL')
        await ended
      }
      const { environment } = openCatalogTables(path)
      t.same(sound(checkIndex(openIndexTables(environment), 1_000_000).problems), [], `after kill ${kills}`)
      await environment.close()
    }
    const whole = openHouse()
    for (const { block, transactions, bundles } of new Chain(killedChain).blocks()) {
      await whole.apply([blockMessage(block, transactions)])
      await whole.apply(bundles.map(({ rootId, items }) => itemsMessage(rootId, items)))
    }
    const { environment } = openCatalogTables(path)
    const tables = openIndexTables(environment)
    t.ok(tables.segments.all().length > 0)
    t.ok(tables.segments.count() > 5000, 'most rows never were in the tables')
    t.same(dump(tables), dump(whole.tables))
    await environment.close()
    await whole.close()
  })
}
