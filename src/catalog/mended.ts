import { VarReader, VarWriter } from '../format/varbytes.js'
import type { Table } from '../store/lmdb.js'

/** What was taken out of segments because pages of theirs are damaged, since the index began. */
export interface Mended {
  readonly segments: number
  readonly rows: number
  readonly blocks: number
}

const mendedKey = Buffer.from('mended')
const version = 1

export function mendedIn(indexMeta: Table): Mended {
  const record = indexMeta.get(mendedKey)
  if (record === undefined || record[0] !== version) return { segments: 0, rows: 0, blocks: 0 }
  const read = new VarReader(record, 1)
  return { segments: read.uint(), rows: read.uint(), blocks: read.uint() }
}

/** Inside a transaction: only the keeper. Version u8, then the numbers in LEB128. */
export function addMended(indexMeta: Table, { segments, rows, blocks }: Mended): void {
  const before = mendedIn(indexMeta)
  const out = new VarWriter()
  out.u8(version)
  for (const number of [before.segments + segments, before.rows + rows, before.blocks + blocks])
    out.uint(number)
  indexMeta.put(mendedKey, out.copy())
}
