/** A database of the other gateway is left as it is, also by a reader that is killed. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import sqlite from 'node-sqlite3-wasm'
import t from 'tap'

const reader = new URL('../../src/main/adopt/peer-database.js', import.meta.url).href

t.test('a reader that is killed leaves no lock, and its copy is removed by the next one', async (t) => {
  const folder = t.testdir({ peer: {}, work: {} })
  const [path, work] = [join(folder, 'peer/data.db'), join(folder, 'work')]
  const made = new sqlite.Database(path)
  made.exec('CREATE TABLE contiguous_data_ids (id BLOB)')
  for (let at = 0; at < 100; at += 1) made.run('INSERT INTO contiguous_data_ids VALUES (?)', [at])
  made.close()
  const killed = `
    const { PeerDatabase } = await import('${reader}')
    const database = await PeerDatabase.open(${JSON.stringify(path)}, ${JSON.stringify(work)})
    for (const _ of database.rows('SELECT id FROM contiguous_data_ids')) process.kill(process.pid, 'SIGKILL')`
  const { signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', killed])
  t.equal(signal, 'SIGKILL', String(stderr))
  t.not(readdirSync(work).length, 0)
  const { contentCount, PeerDatabase } = await import('../../src/main/adopt/peer-database.js')
  const database = await PeerDatabase.open(path, work)
  t.equal(contentCount(database), 100)
  database.close()
  t.strictSame(readdirSync(work), [])
  t.strictSame(readdirSync(join(folder, 'peer')), ['data.db'])
})
