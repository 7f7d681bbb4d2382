import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { isMissing } from './blobs.js'
import { isEndFree } from './lmdb-free.js'
import { Broken, headBytes, largePages, nodesOf, readPage, type Tree, treeIn } from './lmdb-page.js'
import { walkWhole } from './lmdb-walk.js'

/**
 * Whether LMDB may open a data file. It maps the file and believes every number in it: one that is cut off, or was overwritten,
 * ends the process by a signal. Layout: MDB_meta in mdb.c of the lmdb package (data version 2), and lmdb-page.ts.
 */
const magic = 0xbeefc0de
const dataVersion = 2
/** MDB_meta behind a page's head, as far as it is read: up to the boot id. */
const metaBytes = 144
/** Attempts to look at a database while nothing is written to it. */
const triesMax = 20

interface Meta {
  readonly pageBytes: number
  /** The free list, and the table of tables. */
  readonly trees: readonly Tree[]
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

/**
 * Why the data file of the environment in folder `path` cannot be opened, in words for an operator; undefined where nothing
 * speaks against it, or there is none yet. Looks at the header, and at up to `pagesMax` pages from the roots down (0: at none;
 * infinite: at all, and at the order of keys and the list of free pages, too). A file that is shorter than its header says is
 * looked at whole, unless all that it lacks is free: what was freed at its end need not be there. Nobody may write meanwhile, but
 * where `pagesMax` is 0. Throws where the file cannot be read.
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
  return {
    pageBytes: bytes.readUInt32LE(headBytes + 0x18),
    trees: [treeIn(bytes, headBytes + 0x18, 'free'), treeIn(bytes, headBytes + 0x48, 'tables')],
    lastPage: Number(bytes.readBigUInt64LE(headBytes + 0x78)),
    transaction: bytes.readBigUInt64LE(headBytes + 0x80),
    bootId: bytes.readBigInt64LE(headBytes + 0x88),
  }
}

/** The first part of the kernel's number of this start of the machine, as LMDB reads it; 0 where there is none. */
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
  const from = { file, size, ...meta }
  const [free] = meta.trees
  const needed = (lastPage + 1) * pageBytes
  let isCut = size < needed
  try {
    if (isCut && free !== undefined) isCut = !isEndFree(from, free, Math.floor(size / pageBytes))
    if (pagesMax === Number.POSITIVE_INFINITY && !isCut) walkWhole(from)
    else walk(file, size, meta, isCut ? Number.POSITIVE_INFINITY : pagesMax)
    return undefined
  } catch (error) {
    if (!(error instanceof Broken)) throw error
    return isCut ? `it has ${size} of ${needed} bytes: it was cut off (${error.message})` : error.message
  }
}

/** Looks at pages level by level from the roots down. Throws `Broken` at the first that is not what it must be. */
function walk(file: number, size: number, meta: Meta, pagesMax: number): void {
  const { pageBytes } = meta
  const page = Buffer.alloc(pageBytes)
  const read = (number: number): void => readPage({ file, size, ...meta }, number, page)
  const waiting = meta.trees.flatMap(({ root }) => (root === undefined ? [] : [root]))
  for (let seen = 0; seen < waiting.length && seen < pagesMax; seen += 1) {
    const number = waiting[seen] as number
    // No tree is larger than the file: more would be a circle.
    if (seen * pageBytes > size) throw new Broken('its pages form a circle')
    read(number)
    const nodes = nodesOf(page, number)
    for (const one of nodes) {
      if (one.below !== undefined) waiting.push(one.below)
      else if (one.table?.root !== undefined) waiting.push(one.table.root)
    }
    for (const { large } of nodes) if (large !== undefined) largePages({ file, size, ...meta }, large, page)
  }
}
