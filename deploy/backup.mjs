#!/usr/bin/env node
// node deploy/backup.mjs DATA_PATH TARGET: copies what cannot be had again (keys, payments, credits, accepted uploads, tokens, block list,
// names) while the program runs. Each database is copied as it was at one moment. TARGET must not be there yet; it holds secrets.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'

const databases = [
  ...['payments', 'ledger', 'ledger-x402', 'uploads', 'admission', 'moderation', 'names', 'name-leases'],
]
const [from, to] = process.argv.slice(2)

if (from === undefined || to === undefined || !existsSync(from) || existsSync(to)) {
  process.stderr.write('Usage: backup.mjs DATA_PATH TARGET (a folder that is not there yet)\n')
  process.exit(2)
}
process.umask(0o077)
mkdirSync(to, { recursive: true, mode: 0o700 })
for (const name of databases) {
  if (!existsSync(join(from, name, 'data.mdb'))) continue
  mkdirSync(join(to, name), { mode: 0o700 })
  const database = open({ path: join(from, name), noSubdir: false, readOnly: true, maxReaders: 256 })
  await database.backup(join(to, name), true)
  await database.close()
  process.stdout.write(`${name}\n`)
}
// The log of accepted items after its tables: at a start the tables are brought up to a newer log. Its files are allocated ahead, so
// that their holes must stay holes. One that is gone meanwhile held only items that are permanent.
const log = join(from, 'uploads', 'log')
if (existsSync(log)) {
  mkdirSync(join(to, 'uploads', 'log'), { mode: 0o700 })
  for (const name of readdirSync(log)) {
    const { status } = spawnSync('cp', [
      '-r',
      '--sparse=always',
      join(log, name),
      join(to, 'uploads', 'log', name),
    ])
    if (status === 0 || !existsSync(join(log, name))) continue
    process.stderr.write(`uploads/log/${name} could not be copied\n`)
    process.exit(1)
  }
  process.stdout.write('uploads/log\n')
}
if (existsSync(join(from, 'keys'))) {
  cpSync(join(from, 'keys'), join(to, 'keys'), { recursive: true })
  process.stdout.write('keys\n')
}
