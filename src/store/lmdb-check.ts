import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { isMissing } from './blobs.js'

/**
 * Whether LMDB may open a data file. It maps the file and believes every number in it: one that is cut off, or was overwritten,
 * ends the process by a signal. Layout: MDB_page_header, MDB_meta, MDB_db and MDB_node in mdb.c of the lmdb package (data version
 * 2, numbers of this machine's byte order, which is little-endian on all that the program runs on).
 */
const magic = 0xbeefc0de
const dataVersion = 2
const headBytes = 24
/** MDB_meta behind a page's head, as far as it is read: up to the boot id. */
const metaBytes = 144
const pageFlags = { branch: 1, leaf: 2, overflow: 4, meta: 8 } as const
/** Flags that a page may keep from its transaction (P_DIRTY_OVF, P_KEEP). All others say how its bytes are to be read. */
const idleFlags = 0xa000
const nodeFlags = { big: 1, sub: 2 } as const
const nodeBytes = 8
/** MDB_db: its root is the last of its numbers. */
const rootAt = 40
const none = 2n ** 64n - 1n
/** Attempts to look at a database while nothing is written to it. */
const triesMax = 20

interface Meta {
  readonly pageBytes: number
  /** Of the free list, and of the table of tables; absent where a tree is empty. */
  readonly roots: readonly number[]
  readonly lastPage: number
  readonly transaction: bigint
  readonly bootId: bigint
}

/** A data file that LMDB must not open. */
export class BrokenDatabase extends Error {
  /** `path`: folder of the environment. */
  constructor(
    readonly path: string,
    readonly fault: string,
  ) {
    super(`${join(path, 'data.mdb')} is broken: ${fault}. See "A database is broken" in deploy/OPERATING.md`)
  }
}

/** Tells a broken tree from one that is sound; never leaves `databaseFault`. */
class Broken extends Error {}

/**
 * Why the data file of the environment in folder `path` cannot be opened, in words for an operator; undefined where nothing
 * speaks against it, or there is none yet. Looks at the header, and at up to `pagesMax` pages from the roots down (0: at none).
 * A file that is shorter than its header says is looked at whole: what was freed at its end need not be there. Nobody may write
 * meanwhile, but where `pagesMax` is 0. Throws where the file cannot be read.
 */
export function databaseFault(path: string, pagesMax: number): string | undefined {
  return inDataFile(path, (file) => (fstatSync(file).isFile() ? faultIn(file, pagesMax) : 'it is no file'))
}

/** What `read` finds in the data file of the environment in folder `path`; undefined where there is none yet. */
function inDataFile<Found>(path: string, read: (file: number) => Found): Found | undefined {
  let file: number
  try {
    file = openSync(join(path, 'data.mdb'), 'r')
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
  try {
    return read(file)
  } finally {
    closeSync(file)
  }
}

/** The same where another process may write meanwhile: a fault counts only where nothing was written while it was found. */
export function lastingFault(path: string, pagesMax: number): string | undefined {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const before = transactions(path)
    const fault = databaseFault(path, pagesMax)
    if (fault === undefined || transactions(path) === before) return fault
  }
  // Another program works with it.
  return undefined
}

/** A number that every transaction in the data file raises; undefined where its header cannot be read. */
function transactions(path: string): bigint | undefined {
  return inDataFile(path, (file) => {
    const first = metaAt(file, 0)
    if (typeof first === 'string') return undefined
    const second = metaAt(file, first.pageBytes)
    return typeof second === 'string' ? undefined : first.transaction + second.transaction
  })
}

function faultIn(file: number, pagesMax: number): string | undefined {
  const { size } = fstatSync(file)
  // LMDB makes a database of an empty file.
  if (size === 0) return undefined
  const first = metaAt(file, 0)
  if (first === 'foreign') return 'it is no database of LMDB, or its first page was overwritten'
  if (first === 'version') return 'it was written by another version of LMDB'
  const { pageBytes } = first
  if (!isPageSize(pageBytes)) return `its header says pages of ${pageBytes} bytes`
  const second = metaAt(file, pageBytes)
  if (size < 2 * pageBytes || typeof second === 'string')
    return 'its second page is missing or was overwritten'
  if (second.pageBytes !== pageBytes) return 'its two headers contradict each other'
  if (pagesMax === 0) return undefined
  const flushed = metaAt(file, pageBytes / 2)
  const metas = [first, second, ...(typeof flushed === 'string' ? [] : [flushed])]
  const [newest = first, ...older] = metas.sort((one, other) => Number(other.transaction - one.transaction))
  const fault = faultOfTrees(file, size, newest, pagesMax)
  if (fault === undefined || newest.bootId === bootId()) return fault
  // After a power cut LMDB goes back to what was flushed before.
  return older.some((meta) => faultOfTrees(file, size, meta, pagesMax) === undefined) ? undefined : fault
}

function isPageSize(bytes: number): boolean {
  return bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0
}

/** The header at this byte of the file, or what is wrong with it. */
function metaAt(file: number, at: number): Meta | 'foreign' | 'version' {
  const bytes = Buffer.alloc(headBytes + metaBytes)
  if (readSync(file, bytes, 0, bytes.length, at) < bytes.length) return 'foreign'
  // The half page holds a header without a head.
  if (bytes.readUInt32LE(headBytes) !== magic) return 'foreign'
  if ((bytes.readUInt32LE(headBytes + 4) & 0xffff) !== dataVersion) return 'version'
  const roots = [0x40, 0x70].map((root) => bytes.readBigUInt64LE(headBytes + root))
  return {
    pageBytes: bytes.readUInt32LE(headBytes + 0x18),
    roots: roots.flatMap((root) => (root === none ? [] : [Number(root)])),
    lastPage: Number(bytes.readBigUInt64LE(headBytes + 0x78)),
    transaction: bytes.readBigUInt64LE(headBytes + 0x80),
    bootId: bytes.readBigInt64LE(headBytes + 0x88),
  }
}

/** As LMDB reads it: the first part of the kernel's number of this start of the machine; 0 where it gives none. */
function bootId(): bigint {
  try {
    const [part = ''] = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').split('-')
    return BigInt(`0x${part}`)
  } catch {
    return 0n
  }
}

function faultOfTrees(file: number, size: number, meta: Meta, pagesMax: number): string | undefined {
  const { pageBytes, lastPage } = meta
  const needed = (lastPage + 1) * pageBytes
  const isShort = size < needed
  try {
    walk(file, size, meta, isShort ? Number.POSITIVE_INFINITY : pagesMax)
    return undefined
  } catch (error) {
    if (!(error instanceof Broken)) throw error
    return isShort ? `it has ${size} of ${needed} bytes: it was cut off (${error.message})` : error.message
  }
}

/** Looks at pages level by level from the roots down. Throws `Broken` at the first that is not what it must be. */
function walk(file: number, size: number, meta: Meta, pagesMax: number): void {
  const { pageBytes, roots, transaction } = meta
  const page = Buffer.alloc(pageBytes)
  const read = (number: number): void => {
    const at = number * pageBytes
    if (!(at >= 0 && at + pageBytes <= size)) throw new Broken(`page ${number} lies beyond its end`)
    readSync(file, page, 0, pageBytes, at)
    const isIts = page.readBigUInt64LE(0) === BigInt(number)
    // LMDB writes to a page of a later transaction where it lies, and what lies there is mapped for reading alone.
    const isPast = page.readBigUInt64LE(8) <= transaction
    if (!isIts || !isPast) throw new Broken(`page ${number} was overwritten`)
  }
  const waiting = [...roots]
  for (let seen = 0; seen < waiting.length && seen < pagesMax; seen += 1) {
    const number = waiting[seen] as number
    // No tree is larger than the file: more would be a circle.
    if (seen * pageBytes > size) throw new Broken('its pages form a circle')
    read(number)
    const [below, large] = childrenOf(page, number)
    for (const one of below) waiting.push(one)
    for (const one of large) {
      read(one)
      const isLarge = kindOf(page) === pageFlags.overflow
      if (!isLarge || (one + page.readUInt32LE(20)) * pageBytes > size)
        throw new Broken(`page ${one} was overwritten`)
    }
  }
}

/** What a page is: one of `pageFlags`, or another number where it was overwritten. */
function kindOf(page: Buffer): number {
  return page.readUInt16LE(18) & ~idleFlags
}

/** Pages that a page names: further pages of trees, and values that have pages of their own. */
function childrenOf(page: Buffer, number: number): readonly [below: number[], large: number[]] {
  const broken = new Broken(`page ${number} was overwritten`)
  const kind = kindOf(page)
  const [lower, upper] = [page.readUInt16LE(20), page.readUInt16LE(22)]
  const isBranch = kind === pageFlags.branch
  if (!isBranch && kind !== pageFlags.leaf) throw broken
  if (lower > upper || headBytes + upper > page.length || lower % 2 !== 0) throw broken
  const [below, large]: [number[], number[]] = [[], []]
  for (let at = headBytes; at < headBytes + lower; at += 2) {
    const node = page.readUInt16LE(at) + headBytes
    if (node < headBytes + upper || node + nodeBytes > page.length) throw broken
    const low = page.readUInt32LE(node)
    const nodeFlag = page.readUInt16LE(node + 4)
    const data = node + nodeBytes + page.readUInt16LE(node + 6)
    if (data > page.length) throw broken
    if (isBranch) {
      below.push(low + nodeFlag * 2 ** 32)
      continue
    }
    const isBig = (nodeFlag & nodeFlags.big) !== 0
    if (data + (isBig ? 8 : low) > page.length) throw broken
    if (isBig) large.push(Number(page.readBigUInt64LE(data)))
    if ((nodeFlag & nodeFlags.sub) === 0 || low < rootAt + 8) continue
    const root = page.readBigUInt64LE(data + rootAt)
    if (root !== none) below.push(Number(root))
  }
  return [below, large]
}
