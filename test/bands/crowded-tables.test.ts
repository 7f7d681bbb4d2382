import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { RootIndexWriter } from '../../src/bands/root-writer.js'
import { KeyHash, startSlot, tableOf } from '../../src/format/cdb64.js'
import { CdbSearch, closeCdb, openCdb } from '../../src/store/cdb-reader.js'
import { scratch } from '../scratch.js'
import { placeFor } from './root-band-rig.js'

/** Ids that begin with `first`, fall into table 7, and there on one stretch of the slots: as anybody can make them. */
function groundIds(count: number, first: number): Buffer[] {
  const ids: Buffer[] = []
  const hash = new KeyHash()
  const slots = 2 * count
  const id = randomBytes(32)
  id[0] = first
  for (let tries = 0; ids.length < count; tries += 1) {
    id.writeUInt32LE(tries, 20)
    const { lo, hi } = hash.of(id, 0, 32)
    if (tableOf(lo) === 7 && startSlot(lo, hi, slots) < slots * 0.4) ids.push(Buffer.from(id))
  }
  return ids
}

t.test('ids that were made to crowd a table keep no band from being built', async (t) => {
  const folder = scratch('crowded')
  const writer = new RootIndexWriter(folder)
  t.teardown(() => writer.close())
  const ids = groundIds(1200, 0x5a)
  for (const [at, id] of ids.entries()) writer.add(id, placeFor(at), at)
  const { records } = await writer.finish('2026-01-01T00:00:00.000Z', {})
  t.ok(writer.leftOut >= 1 && writer.leftOut <= 16, `${writer.leftOut} records were left out`)
  t.equal(records, ids.length - writer.leftOut)
  const file = openCdb(join(folder, '5a.cdb'))
  if (typeof file === 'string') throw new Error(file)
  t.teardown(() => closeCdb(file))
  const search = new CdbSearch()
  const found = ids.filter((id) => search.find(file, id) === 'found')
  t.equal(found.length, records, 'all others are found')
})
