import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openEnvironment } from '../../src/store/lmdb.js'

const script = fileURLToPath(new URL('../../../deploy/backup.mjs', import.meta.url))

async function backup(...words: readonly string[]): Promise<number | null> {
  const child = spawn(process.execPath, [script, ...words], { stdio: 'ignore' })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

t.test('databases that are written to meanwhile are copied as they were at one moment', async (t) => {
  const root = t.testdir()
  const [from, to] = [join(root, 'data'), join(root, 'copy')]
  mkdirSync(join(from, 'keys'), { recursive: true })
  writeFileSync(join(from, 'keys', 'admin.key'), 'secret', { mode: 0o600 })
  mkdirSync(join(from, 'uploads', 'log'), { recursive: true })
  writeFileSync(join(from, 'uploads', 'log', '1.log'), 'items')
  // Both sorts of databases that the program has.
  const sorts = [
    ['payments', true],
    ['uploads', true],
    ['moderation', false],
  ] as const
  const open = sorts.map(([name, durable]) => openEnvironment(join(from, name), 16, durable))
  // Two rows of one transaction always have the same number.
  const write = (number: number): void => {
    const value = Buffer.from(String(number))
    for (const environment of open) {
      const table = environment.table('rows')
      environment.write(() => {
        table.put(Buffer.from('a'), value)
        table.put(Buffer.from('b'), value)
      })
    }
  }
  write(0)
  let number = 0
  const timer = setInterval(() => write(++number), 1)
  t.equal(await backup(from, to), 0)
  clearInterval(timer)
  t.ok(number > 0, 'it was written to meanwhile')
  for (const environment of open) await environment.close()
  for (const [name, durable] of sorts) {
    const copy = openEnvironment(join(to, name), 16, durable)
    const [a, b] = ['a', 'b'].map((key) =>
      Buffer.from(copy.table('rows').get(Buffer.from(key)) ?? []).toString(),
    )
    t.match(a, /^\d+$/)
    t.equal(a, b, name)
    await copy.close()
  }
  t.equal(readFileSync(join(to, 'keys', 'admin.key'), 'utf8'), 'secret')
  t.equal(readFileSync(join(to, 'uploads', 'log', '1.log'), 'utf8'), 'items')
  t.equal(statSync(to).mode & 0o777, 0o700, 'nobody else reads it')
  t.notOk(existsSync(join(to, 'catalog')))
  t.equal(await backup(from, to), 2, 'nothing is written over')
})
