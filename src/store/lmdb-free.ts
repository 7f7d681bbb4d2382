import { readSync } from 'node:fs'
import { Broken, type DataFile, headBytes, largePages, nodesOf, readPage, type Tree } from './lmdb-page.js'

/**
 * The list of free pages of an LMDB data file. Each value is how many numbers follow, then these: a page, 0 for nothing, or,
 * below zero, how many pages in a row begin at the page that comes next (midl.c of the lmdb package).
 */

/** Throws `Broken` where a value names pages that the file does not have. */
export function checkFree(list: Buffer, lastPage: number): void {
  const count = list.length < 8 ? Number.NaN : Number(list.readBigUInt64LE(0))
  let isWrong = !((count + 1) * 8 <= list.length)
  for (let at = 8; !isWrong && at < (count + 1) * 8; at += 8) {
    const page = list.readBigInt64LE(at)
    isWrong = page > BigInt(lastPage) || page < -BigInt(lastPage) || page === 1n
  }
  if (isWrong) throw new Broken('its list of free pages was overwritten')
}

/** Bytes of a value that has pages of its own, from page `first` on. */
export function largeValue({ file, pageBytes }: DataFile, first: number, valueBytes: number): Buffer {
  const value = Buffer.alloc(valueBytes)
  readSync(file, value, 0, valueBytes, first * pageBytes + headBytes)
  return value
}

/**
 * Whether all pages from `first` to the last are free: then a file that ends before them lacks nothing. LMDB does not write pages
 * that a transaction took and gave back. Reads the list of free pages alone. Throws `Broken` where it cannot be read.
 */
export function isEndFree(
  from: DataFile & { readonly lastPage: number },
  { root }: Tree,
  first: number,
): boolean {
  const { lastPage, pageBytes, size } = from
  const page = Buffer.alloc(pageBytes)
  const spans: { readonly start: number; readonly end: number }[] = []
  const add = (list: Buffer): void => {
    checkFree(list, lastPage)
    const count = Number(list.readBigUInt64LE(0))
    for (let at = 1; at <= count; at += 1) {
      const number = Number(list.readBigInt64LE(at * 8))
      const isSpan = number < 0 && at < count
      if (isSpan) at += 1
      const start = isSpan ? Number(list.readBigInt64LE(at * 8)) : number
      const end = start + (isSpan ? -number : 1)
      if (start > 0 && end > first) spans.push({ start, end })
    }
  }
  const waiting = root === undefined ? [] : [root]
  let seen = 0
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    seen += 1
    // No tree is larger than the file: more would be a circle.
    if (seen * pageBytes > size) throw new Broken('its pages form a circle')
    readPage(from, next, page)
    const nodes = nodesOf(page, next)
    const large: { readonly first: number; readonly bytes: number }[] = []
    for (const { below, large: own, valueAt, valueBytes = 0 } of nodes) {
      if (below !== undefined) waiting.push(below)
      else if (own !== undefined) large.push({ first: own, bytes: valueBytes })
      else if (valueAt !== undefined) add(page.subarray(valueAt, valueAt + valueBytes))
    }
    // What nodes hold lies in the page, which the next read overwrites.
    for (const one of large) {
      const pages = largePages(from, one.first, page)
      if (headBytes + one.bytes > pages * pageBytes) throw new Broken(`page ${one.first} was overwritten`)
      add(largeValue(from, one.first, one.bytes))
    }
  }
  let free = first
  for (const { start, end } of spans.sort((one, other) => one.start - other.start)) {
    if (start > free) break
    free = Math.max(free, end)
  }
  return free > lastPage
}
