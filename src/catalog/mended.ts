import { VarReader, VarWriter } from '../format/varbytes.js'
import type { Table } from '../store/lmdb.js'

/** What was taken out of segments because pages of theirs are damaged, since the index began. */
export interface Mended {
  readonly segments: number
  readonly rows: number
  readonly blocks: number
  /** Height of the lowest of these blocks; absent: none was. */
  readonly lowest?: number
}

const mendedKey = Buffer.from('mended')
const version = 1

/** What was recorded of mended segments. Zeros where nothing was, or by another version. */
export function mendedIn(indexMeta: Table): Mended {
  const record = indexMeta.get(mendedKey)
  if (record === undefined || record[0] !== version) return { segments: 0, rows: 0, blocks: 0 }
  const read = new VarReader(record, 1)
  const counts = { segments: read.uint(), rows: read.uint(), blocks: read.uint() }
  const above = read.uint()
  return above === 0 ? counts : { ...counts, lowest: above - 1 }
}

/** Inside a transaction: only the keeper. Version u8, then in LEB128 the numbers, and the lowest height and 1 (0: none). */
export function addMended(indexMeta: Table, { segments, rows, blocks, lowest }: Mended): void {
  const before = mendedIn(indexMeta)
  const out = new VarWriter()
  out.u8(version)
  for (const number of [before.segments + segments, before.rows + rows, before.blocks + blocks])
    out.uint(number)
  const least = Math.min(before.lowest ?? Number.MAX_SAFE_INTEGER, lowest ?? Number.MAX_SAFE_INTEGER)
  out.uint(least === Number.MAX_SAFE_INTEGER ? 0 : least + 1)
  indexMeta.put(mendedKey, out.copy())
}
