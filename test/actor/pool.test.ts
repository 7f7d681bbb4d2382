import { createHash } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Log, silentLog } from '../../src/actor/log.js'
import { Pool } from '../../src/actor/pool.js'

/** A pool of one thread with one place to wait, and what it logs of failures. */
function small(): { pool: Pool; warned: string[] } {
  const warned: string[] = []
  const warn = (_: object, message: string): void => void warned.push(message)
  const log = Object.assign(Object.create(silentLog) as Log, { warn })
  return { pool: new Pool({ file: 'proof', threads: 1, waitingMax: 1 }, log), warned }
}

t.test('one task more than there is room for is refused at once, and not tried again', async (t) => {
  const { pool, warned } = small()
  t.teardown(() => pool.close())
  const bytes = Buffer.from('some content')
  const path = join(t.testdir(), 'file')
  writeFileSync(path, bytes)
  const part = { path }
  const digest = createHash('sha256').update(bytes).digest()
  // The first of these starts the thread; all of them come before it is up.
  for (const _ of [1, 2]) {
    const results = await Promise.all(Array.from({ length: 6 }, () => pool.run('digest', { part })))
    for (const result of results.slice(0, 2)) t.same(Buffer.from(result as Uint8Array), digest)
    for (const result of results.slice(2)) t.match(result, { refused: 'busy', fault: 'self' })
  }
  t.same(warned, [])
})

t.test('a task that fails is run once more, and its place is free then', async (t) => {
  const { pool, warned } = small()
  t.teardown(() => pool.close())
  for (let failure = 1; failure <= 3; failure += 1) {
    await t.rejects(pool.run('digest', {}))
    t.equal(warned.length, failure)
  }
})

t.test('tasks that wait are done in the order in which they came', async (t) => {
  const pool = new Pool({ file: 'proof', threads: 1, waitingMax: 100 }, silentLog)
  t.teardown(() => pool.close())
  const done: number[] = []
  const one = async (at: number): Promise<void> => {
    await pool.run('items', { items: [] })
    done.push(at)
  }
  const wanted = Array.from({ length: 100 }, (_, at) => at)
  await Promise.all(wanted.map(one))
  t.same(done, wanted)
})

t.test('threads are kept for the tasks to come', async (t) => {
  const pool = new Pool({ file: 'proof', threads: 2, waitingMax: 8 }, silentLog)
  t.teardown(() => pool.close())
  const path = join(t.testdir(), 'file')
  writeFileSync(path, 'some content')
  const two = (): Promise<unknown> =>
    Promise.all([1, 2, 3, 4].map(() => pool.run('digest', { part: { path } })))
  // Both are up when a task came to each.
  await two()
  await two()
  const threads = (): number => readdirSync('/proc/self/task').length
  const before = threads()
  await new Promise((resolve) => setTimeout(resolve, 300))
  t.equal(threads(), before)
})
