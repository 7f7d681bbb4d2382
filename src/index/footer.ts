import { crc32 } from 'node:zlib'
import { type CheckedFile, DamagedSegment, pageBytes } from './checked-file.js'
import type { SegmentOutput } from './segment-output.js'

/**
 * The end of a segment. Behind the last page: a CRC-32 for each page (u32 little-endian), then these 256 bytes:
 *
 *     "SLUICEIX", version u32, CRC-32 of the checksums u32, numbers u64 (places of `numbers`), zeros, CRC-32 of all before u32
 */
export const footerBytes = 256
const magic = Buffer.from('SLUICEIX', 'latin1')
const version = 1

/** What a footer has, in this order: sections by where they begin (the next one begins at their end), then counts. */
const numbers = [
  'words',
  'wordBlocks',
  'rows',
  'starts',
  'groups',
  'ids',
  'buckets',
  'forms',
  'shortCodes',
  'keys',
  'keyStarts',
  'end',
  'rowCount',
  'groupCount',
  'wordCount',
  'codedCount',
  'wordBlockCount',
  'formCount',
  'shortCount',
  'keyCount',
] as const

export type Footer = Readonly<Record<(typeof numbers)[number], number>>

/** The sections, in the order of the file. */
export const sections = numbers.slice(0, numbers.indexOf('end'))

/** Ends the file of a segment; its bytes. */
export function writeFooter(out: SegmentOutput, footer: Footer): number {
  const sums = out.endPages()
  const end = Buffer.alloc(footerBytes)
  magic.copy(end)
  end.writeUInt32LE(version, 8)
  end.writeUInt32LE(crc32(sums), 12)
  for (const [at, name] of numbers.entries()) end.writeBigUInt64LE(BigInt(footer[name]), 16 + at * 8)
  end.writeUInt32LE(crc32(end.subarray(0, footerBytes - 4)), footerBytes - 4)
  return out.finish(Buffer.concat([sums, end]))
}

/** Reads the end of a segment, and lets its pages be checked. Throws a DamagedSegment, or an Error on another version. */
export function readFooter(file: CheckedFile): Footer {
  const start = file.sizeBytes - footerBytes
  const end = file.unchecked(start, file.sizeBytes)
  const isWhole =
    end !== undefined &&
    crc32(end.subarray(0, footerBytes - 4)) === end.readUInt32LE(footerBytes - 4) &&
    magic.equals(end.subarray(0, magic.length))
  if (!isWhole) throw new DamagedSegment(file.path, Math.floor(start / pageBytes), 'is no end of a segment')
  if (end.readUInt32LE(8) !== version) {
    throw new Error(`${file.path} is a segment of version ${end.readUInt32LE(8)}`)
  }
  const footer = Object.fromEntries(
    numbers.map((name, at) => [name, Number(end.readBigUInt64LE(16 + at * 8))]),
  ) as Footer
  const sums = file.unchecked(footer.end, start)
  if (sums === undefined || crc32(sums) !== end.readUInt32LE(12)) {
    throw new DamagedSegment(file.path, Math.floor(footer.end / pageBytes), 'has no sound checksums')
  }
  file.checkBy(sums, footer.end)
  return footer
}
