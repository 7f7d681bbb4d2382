import { readSync } from 'node:fs'

/**
 * Pages of an LMDB data file. Layout: MDB_page_header, MDB_db and MDB_node in mdb.c of the lmdb package (data version 2, numbers
 * of this machine's byte order, which is little-endian on all that the program runs on).
 */
export const headBytes = 24
const pageFlags = { branch: 1, leaf: 2, overflow: 4, meta: 8 } as const
/** Flags that a page may keep from its transaction (P_DIRTY_OVF, P_KEEP). All others say how its bytes are to be read. */
const idleFlags = 0xa000
const nodeFlags = { big: 1, sub: 2 } as const
const nodeBytes = 8
/** MDB_db: flags, depth, and its root as the last of its numbers. */
const treeLayout = { flags: 4, depth: 6, root: 40, bytes: 48 } as const
const none = 2n ** 64n - 1n

/** Distinguishes a broken tree from one that is sound. */
export class Broken extends Error {}

/** An error costs more than the look at a page: it is made where it is thrown. */
function overwritten(page: number): Broken {
  return new Broken(`page ${page} was overwritten`)
}

export interface DataFile {
  readonly file: number
  readonly size: number
  readonly pageBytes: number
  /** The newest transaction. */
  readonly transaction: bigint
}

/** A tree of pages: the list of free pages, the table of tables, or a table. */
export interface Tree {
  readonly kind: 'free' | 'tables' | 'table'
  /** How keys and values are laid out (MDB_INTEGERKEY and others). */
  readonly flags: number
  /** Levels of pages. */
  readonly depth: number
  /** Undefined where it is empty. */
  readonly root: number | undefined
}

/** Reads the description of a tree of LMDB (MDB_db in mdb.c). */
export function treeIn(bytes: Buffer, at: number, kind: Tree['kind']): Tree {
  const root = bytes.readBigUInt64LE(at + treeLayout.root)
  return {
    kind,
    flags: bytes.readUInt16LE(at + treeLayout.flags),
    depth: bytes.readUInt16LE(at + treeLayout.depth),
    root: root === none ? undefined : Number(root),
  }
}

/** An entry of a page, by places in it: a page further down, a value, or a table. */
export interface PageNode {
  readonly keyAt: number
  readonly keyEnd: number
  readonly below?: number
  /** First of the pages of a value that has pages of its own. */
  readonly large?: number
  readonly valueAt?: number
  readonly valueBytes?: number
  readonly table?: Tree
}

/** Reads a page, and throws `Broken` where it is not the one with this number, or not of a transaction that was committed. */
export function readPage(
  { file, size, pageBytes, transaction }: DataFile,
  number: number,
  into: Buffer,
): void {
  const at = number * pageBytes
  if (!(at >= 0 && at + pageBytes <= size)) throw new Broken(`page ${number} lies beyond its end`)
  readSync(file, into, 0, pageBytes, at)
  const isIts = into.readUInt32LE(0) + into.readUInt32LE(4) * 2 ** 32 === number
  // LMDB writes to a page of a later transaction where it lies, and what lies there is mapped for reading alone.
  const isPast = into.readBigUInt64LE(8) <= transaction
  if (!isIts || !isPast) throw overwritten(number)
}

/** How many pages a large value takes, from its first on, which is read into `page`. */
export function largePages(from: DataFile, first: number, page: Buffer): number {
  readPage(from, first, page)
  const count = page.readUInt32LE(20)
  if (kindOf(page) !== pageFlags.overflow || (first + count) * from.pageBytes > from.size)
    throw overwritten(first)
  return count
}

/** What a page is: one of `pageFlags`, or another number where it was overwritten. */
function kindOf(page: Buffer): number {
  return page.readUInt16LE(18) & ~idleFlags
}

/** The entries of a page of a tree. Throws `Broken`. */
export function nodesOf(page: Buffer, number: number): readonly PageNode[] {
  const kind = kindOf(page)
  const [lower, upper] = [page.readUInt16LE(20), page.readUInt16LE(22)]
  const isBranch = kind === pageFlags.branch
  if (!isBranch && kind !== pageFlags.leaf) throw overwritten(number)
  if (lower > upper || headBytes + upper > page.length || lower % 2 !== 0) throw overwritten(number)
  const nodes: PageNode[] = []
  for (let at = headBytes; at < headBytes + lower; at += 2) {
    const node = page.readUInt16LE(at) + headBytes
    if (node < headBytes + upper || node + nodeBytes > page.length) throw overwritten(number)
    const low = page.readUInt32LE(node)
    const nodeFlag = page.readUInt16LE(node + 4)
    const data = node + nodeBytes + page.readUInt16LE(node + 6)
    if (data > page.length) throw overwritten(number)
    const key = { keyAt: node + nodeBytes, keyEnd: data }
    if (isBranch) {
      nodes.push({ ...key, below: low + nodeFlag * 2 ** 32 })
      continue
    }
    const isBig = (nodeFlag & nodeFlags.big) !== 0
    if (data + (isBig ? 8 : low) > page.length) throw overwritten(number)
    if (isBig) nodes.push({ ...key, large: Number(page.readBigUInt64LE(data)), valueBytes: low })
    else if ((nodeFlag & nodeFlags.sub) !== 0 && low >= treeLayout.bytes)
      nodes.push({ ...key, table: treeIn(page, data, 'table') })
    else nodes.push({ ...key, valueAt: data, valueBytes: low })
  }
  return nodes
}
