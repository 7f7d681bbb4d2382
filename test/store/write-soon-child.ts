/** Writes groups and tells of each that is visible, until it is killed. */
import { openEnvironment } from '../../src/store/lmdb.js'

const environment = openEnvironment(process.argv[2] ?? '')
const table = environment.table('some')
for (let at = 0; ; at += 1) {
  await environment.writeSoon(() => table.put(Buffer.from(`${at}`), Buffer.alloc(200, at))).visible
  process.stdout.write(`${at}\n`)
}
