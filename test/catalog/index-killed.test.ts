import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { scratch } from '../scratch.js'
import { dump } from './index-model.js'
import { killAgain, neverKilled, sound } from './killed-again.js'

const importer = fileURLToPath(new URL('./killed-importer.js', import.meta.url))

t.test('an import that is killed again and again ends with the index of one that was not', async (t) => {
  const path = scratch('killed')
  await killAgain(importer, [path], { max: 5, stepMs: 40 }, (problems, kills) =>
    t.same(problems, [], `after kill ${kills}`),
  )
  const whole = await neverKilled()
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
  await killAgain(importer, [path, 'flush'], { max: 8, stepMs: 30 }, (problems, kills, tables) => {
    t.same(problems, [], `after kill ${kills}`)
    segments = Math.max(segments, tables.segments.all().length)
  })
  t.ok(segments > 0, `${segments} segments`)
  const whole = await neverKilled()
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
