import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openEnvironment } from '../../src/store/lmdb.js'
import { databaseFault } from '../../src/store/lmdb-check.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { damageKinds, spoiltPage } from './spoilt-page.js'

/** Many with DAMAGES=2000. */
const rounds = Number(process.env.DAMAGES ?? 150)
const all = Number.POSITIVE_INFINITY
const pageBytes = 4096
const child = fileURLToPath(new URL('lmdb-spoilt.js', import.meta.url))

function below(count: number): number {
  return Math.floor(random() * count)
}

/** Two tables of several levels, large values, and many free pages. */
async function sound(): Promise<string> {
  const path = join(scratch('walk'), 'sound')
  const environment = openEnvironment(path)
  const [one, other] = [environment.table('one'), environment.table('other')]
  for (let round = 0; round < 20; round += 1) {
    environment.write(() => {
      for (let n = 0; n < 300; n += 1) {
        one.put(Buffer.from(`key ${round} ${n}`), Buffer.alloc(40 + (n % 90), n))
        if (n % 50 === 0) other.put(Buffer.from(`large ${round} ${n}`), Buffer.alloc(9000, n))
      }
    })
    environment.write(() => {
      for (let n = 0; n < 300; n += 2) one.remove(Buffer.from(`key ${round} ${n}`))
    })
  }
  await environment.close()
  return path
}

t.test('a database that is written to and emptied in any order is sound after every commit', async (t) => {
  const path = join(scratch('walk'), 'busy')
  const environment = openEnvironment(path)
  const tables = ['one', 'two', 'three'].map((name) => environment.table(name))
  for (let round = 0; round < 100; round += 1) {
    environment.write(() => {
      for (let changes = below(200); changes > 0; changes -= 1) {
        const table = tables[below(3)]
        const key = Buffer.from(`${below(3000)} key`.repeat(1 + below(8)))
        if (random() < (round < 62 ? 0.6 : 0.1))
          table?.put(key, Buffer.alloc(below(10) === 0 ? 9000 : below(600)))
        else table?.remove(key)
      }
      if (round === 97) for (const table of tables) for (const key of [...table.keys({})]) table.remove(key)
    })
    const fault = databaseFault(path, all)
    if (fault !== undefined) t.fail(`after ${round} commits: ${fault}`)
  }
  await environment.close()
  t.equal(databaseFault(path, all), undefined)
})

t.test('what is judged sound ends no process, whatever was overwritten', async (t) => {
  const from = await sound()
  t.equal(databaseFault(from, all), undefined)
  const bytes = readFileSync(join(from, 'data.mdb'))
  const pages = bytes.length / pageBytes
  const pageAt = (number: number): Buffer => bytes.subarray(number * pageBytes, (number + 1) * pageBytes)
  const left: { path: string; how: string }[] = []
  for (let round = 0; round < rounds; round += 1) {
    const kind = damageKinds[round % damageKinds.length] ?? 'noise'
    const spoilt = Buffer.from(bytes)
    const number = 2 + below(pages - 2)
    const other = pageAt(2 + below(pages - 2))
    spoiltPage(pageAt(number), other, kind, number).copy(spoilt, number * pageBytes)
    const path = join(scratch('walk'), 'spoilt')
    cpSync(from, path, { recursive: true })
    writeFileSync(join(path, 'data.mdb'), spoilt)
    if (databaseFault(path, all) === undefined) left.push({ path, how: `${kind} in page ${number}` })
  }
  const ended: string[] = []
  for (let at = 0; at < left.length; ) {
    const some = left.slice(at, at + 50)
    const run = spawnSync(process.execPath, [child, ...some.map(({ path }) => path)], { encoding: 'utf8' })
    const done = run.stdout.trim().split('\n').length
    if (run.signal !== null) ended.push(`${run.signal}: ${some[done - 1]?.how}`)
    at += run.signal === null ? some.length : done
  }
  t.comment(`${rounds} were spoilt, ${left.length} judged sound`)
  t.same(ended, [])
})
