/** Writes to a database in a folder of a small file system of its own: before it is full, while it is, and afterwards. */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { isDiskError } from '../../src/store/disk-error.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { fillDisk } from '../fill-disk.js'

const [folder = ''] = process.argv.slice(2)
const environment = openEnvironment(join(folder, 'tables'))
const table = environment.table('rows')
const outcomes = new Map<string, number>()

function put(from: number, rows: number): void {
  let outcome = 'written'
  try {
    environment.write(() => {
      for (let at = 0; at < rows; at += 1) table.put(Buffer.from(`row ${from + at}`), Buffer.alloc(9000, at))
    })
  } catch (error) {
    if (!isDiskError(error)) throw error
    outcome = 'refused'
  }
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
}

put(0, 10)
fillDisk(join(folder, 'filler'))
for (let at = 0; at < 500; at += 1) put(1000 + at * 60, 1 + (at % 60))
rmSync(join(folder, 'filler'))
put(100_000, 10)
process.stdout.write(JSON.stringify({ ...Object.fromEntries(outcomes), rows: table.count() }))
await environment.close()
