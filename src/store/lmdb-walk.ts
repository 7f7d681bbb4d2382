import { checkFree, largeValue } from './lmdb-free.js'
import {
  Broken,
  type DataFile,
  headBytes,
  largePages,
  nodesOf,
  type PageNode,
  readPage,
  type Tree,
} from './lmdb-page.js'

/** LMDB goes no deeper (CURSOR_STACK). */
const depthMax = 32

/** A page that is to be looked at. Its keys lie from `low` (inclusive) to `high` (exclusive). */
interface Waiting {
  readonly tree: Tree
  readonly number: number
  readonly depth: number
  readonly low: Buffer | undefined
  readonly high: Buffer | undefined
}

/**
 * Looks at every page of every tree, depth first: that no page is reached twice, that keys are in order and lie where the pages
 * above say, that each tree is as deep as it says, and that the list of free pages names pages of the file. Throws `Broken` at
 * the first fault. Takes memory for one bit a page.
 */
export function walkWhole(
  from: DataFile & { readonly trees: readonly Tree[]; readonly lastPage: number },
): void {
  const { pageBytes, size } = from
  const page = Buffer.alloc(pageBytes)
  const seen = new Uint8Array(Math.ceil(size / pageBytes / 8))
  const reach = (number: number): void => {
    const [cell, bit] = [number >> 3, 1 << (number & 7)]
    if (((seen[cell] ?? 0) & bit) !== 0) throw new Broken(`page ${number} belongs to two places`)
    seen[cell] = (seen[cell] ?? 0) | bit
  }
  const waiting: Waiting[] = []
  const begin = (tree: Tree): void => {
    if (tree.depth > depthMax) throw new Broken('a tree is too deep')
    if (tree.root !== undefined)
      waiting.push({ tree, number: tree.root, depth: 1, low: undefined, high: undefined })
  }
  for (const tree of from.trees) begin(tree)
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { tree, number, depth } = next
    readPage(from, number, page)
    reach(number)
    const nodes = nodesOf(page, number)
    const isBranch = nodes[0]?.below !== undefined
    if (isBranch ? depth >= tree.depth : depth !== tree.depth)
      throw new Broken(`page ${number} lies at another depth than it should`)
    // Without keys LMDB would read what lies behind the page. An empty table has no page; the free pages' may be half done.
    if (tree.kind !== 'free' && nodes.length < (isBranch ? 2 : 1)) throw new Broken(`page ${number} is empty`)
    checkOrder(page, nodes, next, isBranch)
    if (isBranch) {
      const keys = nodes.map(({ keyAt, keyEnd }) => Buffer.from(page.subarray(keyAt, keyEnd)))
      for (const [at, { below = 0 }] of nodes.entries()) {
        const low = at === 0 ? next.low : keys[at]
        const high = keys[at + 1] ?? next.high
        waiting.push({ tree, number: below, depth: depth + 1, low, high })
      }
      continue
    }
    // What nodes hold lies in the page, which the next read overwrites.
    const large = nodes.flatMap((node) => (node.large === undefined ? [] : [{ ...node, first: node.large }]))
    for (const { table, valueAt, valueBytes = 0 } of nodes) {
      if (table !== undefined) begin(table)
      if (valueAt !== undefined && tree.kind === 'free')
        checkFree(page.subarray(valueAt, valueAt + valueBytes), from.lastPage)
    }
    for (const { first, valueBytes = 0 } of large) {
      const count = largePages(from, first, page)
      if (headBytes + valueBytes > count * pageBytes) throw new Broken(`page ${first} was overwritten`)
      for (let one = first; one < first + count; one += 1) reach(one)
      if (tree.kind === 'free') checkFree(largeValue(from, first, valueBytes), from.lastPage)
    }
  }
}

/** Keys grow, and lie between those of the page above. The first key of a branch is never read. */
function checkOrder(
  page: Buffer,
  nodes: readonly PageNode[],
  { tree, number, low, high }: Waiting,
  isBranch: boolean,
): void {
  // Other orders than by bytes are not used by the program's own tables.
  if (tree.kind !== 'free' && tree.flags !== 0) return
  const compare = tree.kind === 'free' ? byNumber : Buffer.compare
  let last = low
  const fault = (): Broken => new Broken(`page ${number} holds keys out of order`)
  for (const [at, { keyAt, keyEnd }] of nodes.entries()) {
    if (isBranch && at === 0) continue
    const key = page.subarray(keyAt, keyEnd)
    if (tree.kind === 'free' && key.length !== 8) throw fault()
    if (last !== undefined) {
      const order = compare(last, key)
      // The first key of a leaf may be the one that the page above names.
      if (order > 0 || (order === 0 && !(at === 0 && last === low))) throw fault()
    }
    if (high !== undefined && compare(key, high) >= 0) throw fault()
    last = key
  }
}

function byNumber(one: Buffer, other: Buffer): number {
  const [first, second] = [one.readBigUInt64LE(0), other.readBigUInt64LE(0)]
  return first < second ? -1 : first > second ? 1 : 0
}
