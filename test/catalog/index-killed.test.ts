import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { pause } from '../../src/actor/clock.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { scratch } from '../scratch.js'
import { blockMessage, dump, itemsMessage, openHouse } from './index-model.js'
import { killedChain } from './killed-chain.js'

const importer = fileURLToPath(new URL('./killed-importer.js', import.meta.url))
const killsMax = 8

/** The made-up owners of the bench have addresses of their own. */
const sound = (problems: readonly string[]): string[] =>
  problems.filter((problem) => !problem.startsWith("the owner's key"))

t.test('an import that is killed again and again ends with the index of one that was not', async (t) => {
  const path = scratch('killed')
  for (let kills = 0, done = false; !done; kills += 1) {
    const child = fork(importer, [path], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
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
  t.same(dump(openIndexTables(environment)), dump(whole.tables))
  await environment.close()
  await whole.close()
})

/** Rows of all blocks as the index says them. */
function rowsOf(index: ChainIndex): unknown[] {
  index.refresh()
  return index
    .stretch(0, 0xff_ffff, undefined, 1_000_000)
    .map((row) => ({ ...row, key: Buffer.from(row.key).toString('hex') }))
}

t.test('a writer that is killed in flushes and merges loses no row and has none twice', async (t) => {
  const path = scratch('killed-flush')
  let segments = 0
  for (let kills = 0, done = false; !done; kills += 1) {
    const child = fork(importer, [path, 'flush'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const ended = once(child, 'exit')
    await once(child, 'message')
    if (kills < 2 * killsMax) await Promise.race([ended, pause(10 + 15 * kills)])
    else await ended
    done = child.exitCode === 0
    if (!done) {
      child.kill('SIGKILL')
      await ended
    }
    const { environment } = openCatalogTables(path)
    const tables = openIndexTables(environment)
    t.same(sound(checkIndex(tables, 1_000_000).problems), [], `after kill ${kills}`)
    segments = Math.max(segments, tables.segments.all().length)
    await environment.close()
  }
  t.ok(segments > 0, `${segments} segments`)
  const whole = openHouse()
  for (const { block, transactions, bundles } of new Chain(killedChain).blocks()) {
    await whole.apply([blockMessage(block, transactions)])
    await whole.apply(bundles.map(({ rootId, items }) => itemsMessage(rootId, items)))
  }
  const { environment } = openCatalogTables(path)
  const index = new ChainIndex(environment, new Generations())
  t.same(rowsOf(index), rowsOf(whole.index))
  t.same(index.counts(), whole.index.counts())
  await environment.close()
  await whole.close()
})

t.test('a reader beside the writer sees whole commits only', async (t) => {
  const path = scratch('beside')
  const child = fork(importer, [path], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const ended = once(child, 'exit')
  await once(child, 'message')
  // It waits while the first look is taken.
  child.kill('SIGSTOP')
  const { environment } = openCatalogTables(path)
  const tables = openIndexTables(environment)
  const seen = new Set<number>()
  const look = (): void => {
    environment.refresh()
    const { problems, rows } = checkIndex(tables, 1_000_000)
    if (sound(problems).length > 0) t.same(sound(problems), [])
    seen.add(rows)
  }
  look()
  child.kill('SIGCONT')
  while (child.exitCode === null) {
    look()
    await Promise.race([ended, pause(1)])
  }
  look()
  t.ok(seen.size > 1, 'the index grew meanwhile')
  await environment.close()
})
