import { rowKeyBytes } from './row-key.js'

/**
 * The key of a row in the lists of a segment: its number (u32, big-endian), and zeros. So the scans that read lists of row keys
 * read those of a segment, and no row need be read to compare two.
 */
export function localKey(row: number): Buffer {
  const key = Buffer.alloc(rowKeyBytes)
  key.writeUInt32BE(row, 0)
  return key
}

/** The row with this key of a list. */
export function localRow(key: Uint8Array): number {
  return (
    (((key[0] as number) << 24) |
      ((key[1] as number) << 16) |
      ((key[2] as number) << 8) |
      (key[3] as number)) >>>
    0
  )
}

/** The first row at or behind a key of a list, in a direction. The key may lie between two rows. */
export function rowFrom(key: Uint8Array, backwards: boolean): number {
  const row = localRow(key)
  if (backwards) return row
  for (let at = 4; at < rowKeyBytes; at += 1) if (key[at] !== 0) return row + 1
  return row
}
