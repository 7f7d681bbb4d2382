import { crc32 } from 'node:zlib'
import { type CheckedFile, DamagedSegment, pageBytes } from './checked-file.js'
import type { SegmentOutput } from './segment-output.js'

/**
 * The end of a segment. Behind the last page: a CRC-32 for each page (u32 little-endian), then these 256 bytes, twice:
 *
 *     "SLUICEIX", version u32, numbers u64 (places of `numbers`), zeros, CRC-32 of all before u32
 *
 * A flipped bit in one of the two leaves the other, and one in a checksum looks like one in its page. Version 2 has no `tops`.
 */
export const footerBytes = 256
const copies = 2
const magic = Buffer.from('SLUICEIX', 'latin1')
const version = 3
const withoutTops = 2
const numbersAt = 12

/**
 * What a footer has, in this order: sections by where they begin (the next one begins at their end), then counts, and the heights
 * of the first and the last row (0 where there is none).
 */
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
  'tops',
  'end',
  'rowCount',
  'groupCount',
  'wordCount',
  'codedCount',
  'wordBlockCount',
  'formCount',
  'shortCount',
  'keyCount',
  'lowest',
  'highest',
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
  for (const [at, name] of numbers.entries()) end.writeBigUInt64LE(BigInt(footer[name]), numbersAt + at * 8)
  end.writeUInt32LE(crc32(end.subarray(0, footerBytes - 4)), footerBytes - 4)
  return out.finish(Buffer.concat([sums, end, end]))
}

/**
 * Reads the end of a segment, and lets its pages be checked. Throws a DamagedSegment, or an Error on another version.
 * `damagedEnd`: the page of a footer that is damaged, where the other one is not.
 */
export function readFooter(file: CheckedFile): { footer: Footer; damagedEnd: number | undefined } {
  const starts = Array.from({ length: copies }, (_, copy) => file.sizeBytes - (copy + 1) * footerBytes)
  const ends = starts.map((start) => file.unchecked(start, start + footerBytes))
  const end = ends.find(isWhole)
  const last = Math.floor((starts[0] ?? 0) / pageBytes)
  if (end === undefined) throw new DamagedSegment(file.path, last, 'is no end of a segment')
  const footer = numbersOf(end)
  if (footer === undefined) throw new Error(`${file.path} is a segment of version ${end.readUInt32LE(8)}`)
  const sumsEnd = footer.end + 4 * Math.ceil(footer.end / pageBytes)
  const sums = file.unchecked(footer.end, sumsEnd)
  if (sums === undefined || sumsEnd + copies * footerBytes !== file.sizeBytes) {
    throw new DamagedSegment(file.path, last, 'is the end of another file')
  }
  file.checkBy(sums, footer.end)
  const damaged = starts.find((_, copy) => !isWhole(ends[copy]))
  return { footer, damagedEnd: damaged === undefined ? undefined : Math.floor(damaged / pageBytes) }
}

/** Undefined where it is of another version. */
function numbersOf(end: Buffer): Footer | undefined {
  const found = end.readUInt32LE(8)
  if (found !== version && found !== withoutTops) return undefined
  const names = found === version ? numbers : numbers.filter((name) => name !== 'tops')
  const all = Object.fromEntries(
    names.map((name, at) => [name, Number(end.readBigUInt64LE(numbersAt + at * 8))]),
  ) as Footer
  return found === version ? all : { ...all, tops: all.end }
}

function isWhole(end: Buffer | undefined): end is Buffer {
  return (
    end !== undefined &&
    crc32(end.subarray(0, footerBytes - 4)) === end.readUInt32LE(footerBytes - 4) &&
    magic.equals(end.subarray(0, magic.length))
  )
}
