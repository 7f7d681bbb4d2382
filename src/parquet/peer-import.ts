import type { CatalogRequest } from '../catalog/catalog-messages.js'
import type { BlockInput, ItemInput, TransactionInput } from '../catalog/index-protocol.js'
import { packItems, packTransactions } from '../catalog/pack.js'
import { type Id, idBytes } from '../format/id.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { L1Target } from './l1-import.js'
import { ParquetFault } from './parquet-reader.js'
import { type PeerBlock, peerBlock, peerRowsOf } from './peer-rows.js'
import { heightColumn, type PeerFiles, peerFiles, peerRowCount, peerRows } from './peer-tables.js'
import { Cursor } from './table-cursor.js'

/** One message to the keeper holds so many rows or blocks, then it is sent; items of one bundle in portions of `items`. */
const batchMax = { blocks: 200, rows: 4000, items: 1000 }

/** A block whose rows are in the index. */
export interface PeerPlace {
  readonly height: number
  readonly id: string
}

export interface PeerTarget extends Pick<L1Target, 'index' | 'write' | 'keep' | 'remember'> {
  /** So many blocks and rows more were taken, up to this place: in the index when all that was written is kept. */
  imported(blocks: number, rows: number, place: PeerPlace): Promise<void>
}

/** What was not taken. */
export interface PeerLeft {
  /** Blocks below where the index begins. */
  blocks: number
  /** Items of transactions that the index does not have. */
  items: number
  /** Rows of heights without a block, and items whose place makes no sense. */
  rows: number
}

/** An export of another gateway: `{base}/{blocks,transactions,tags}/data/height={from}-{to}/*.parquet`. */
export interface PeerExport {
  readonly blocks: PeerFiles
  readonly transactions: PeerFiles
  readonly tags: PeerFiles
  /** Rows of the table `blocks`. */
  readonly blockCount: number
}

/** What of an export lies above a height. Throws `ParquetFault` where a file cannot be read. */
export async function openPeerExport(base: string, above = -1): Promise<PeerExport> {
  const [blocks, transactions, tags] = await Promise.all([
    peerFiles(base, 'blocks', above),
    peerFiles(base, 'transactions', above),
    peerFiles(base, 'tags', above),
  ])
  return { blocks, transactions, tags, blockCount: await peerRowCount(blocks) }
}

/**
 * Puts an export into the index, block by block in the order of heights, with memory for the rows of one block. Blocks that the
 * index lacks go behind its top, and must be whole; of the others only the items are taken. Nothing in it is proven: items are
 * marked as unjudged. Every row may be put again, so a call that was killed is repeated from the last reported place.
 * Bundles of which the export has items are not opened again; the others go to `remember`. Rejects where the catalog is lost
 * or `signal` fires.
 */
export async function importPeer(
  found: PeerExport,
  above: number,
  target: PeerTarget,
  left: PeerLeft,
  signal: AbortSignal,
  blocksAtOnce: number = batchMax.blocks,
): Promise<Refusal | undefined> {
  const cursors = [found.blocks, found.transactions, found.tags].map((files) => new Cursor(peerRows(files)))
  const [blocks, transactions, tags] = cursors as [Cursor, Cursor, Cursor]
  const importing = new PeerImport(target, left, blocksAtOnce)
  try {
    await blocks.skipTo(BigInt(above + 1), heightColumn.blocks)
    await importing.anchor(found, above)
    let last: number | undefined
    for (let row = await blocks.next(); row !== undefined; row = await blocks.next()) {
      signal.throwIfAborted()
      const block = peerBlock(row)
      if (block.height === last) continue
      if (last !== undefined && block.height !== last + 1)
        return refused(`the export lacks block ${last + 1}`)
      const height = BigInt(block.height)
      const isFirst = last === undefined
      last = block.height
      const passed = await transactions.skipTo(height, heightColumn.transactions)
      await tags.skipTo(height, heightColumn.tags)
      if (!isFirst) left.rows += passed
      const rows = await transactions.at(height, heightColumn.transactions)
      const refusal = await importing.take(block, rows, await tags.at(height, heightColumn.tags))
      if (refusal !== undefined) return refusal
    }
    await importing.end()
    return undefined
  } catch (error) {
    if (error instanceof ParquetFault) return refused(error.message)
    throw error
  } finally {
    await Promise.all(cursors.map((cursor) => cursor.close()))
  }
}

function refused(message: string): Refusal {
  return refuse('malformed', 'upstream', message)
}

/** The start in the weave of the first block with data in an export. */
async function firstExtent({ blocks, transactions }: PeerExport, above: number): Promise<number | undefined> {
  const [headers, rows] = [new Cursor(peerRows(blocks)), new Cursor(peerRows(transactions))]
  try {
    let passed = 0
    await headers.skipTo(BigInt(above + 1), heightColumn.blocks)
    for (let row = await headers.next(); row !== undefined; row = await headers.next()) {
      const { height, sizeBytes } = peerBlock(row)
      await rows.skipTo(BigInt(height), heightColumn.transactions)
      const { transactions: found } = peerRowsOf(await rows.at(BigInt(height), heightColumn.transactions), [])
      const withData = found.filter(({ size }) => size > 0)
      // A transaction without a place may be the first of its block.
      if (withData.length > 0 && withData.every(({ weaveEnd }) => weaveEnd > 0))
        return Math.min(...withData.map(({ size, weaveEnd }) => weaveEnd - size)) - passed
      passed += sizeBytes
    }
    return undefined
  } finally {
    await Promise.all([headers.close(), rows.close()])
  }
}

class PeerImport {
  #requests: CatalogRequest[] = []
  readonly #bundles: TransactionInput[] = []
  #rows = 0
  #blocks = 0
  /** The last block that was taken: not committed yet, perhaps. */
  #top: { readonly height: number; readonly id: string; readonly weaveSize: number } | undefined
  #place: PeerPlace | undefined
  /** The message before this one: it is committed while the next gathers. */
  #writing = Promise.resolve()
  /** Where the weave ends before the first block that is taken. */
  #weaveStart: number | undefined

  constructor(
    private readonly target: PeerTarget,
    private readonly left: PeerLeft,
    private readonly blocksAtOnce: number,
  ) {}

  /** Finds where in the weave the export begins, where the index does not have it. */
  async anchor(found: PeerExport, above: number): Promise<void> {
    const { index } = this.target
    index.refresh()
    const height = index.topHeight()
    const block = height === undefined ? undefined : index.block(height)
    if (height === undefined) this.#weaveStart = await firstExtent(found, above)
    else if (block !== undefined) this.#top = { height, id: block.id, weaveSize: Number(block.weaveSize) }
  }

  /** Takes a block with its rows and the rows of their tags. */
  async take(
    block: PeerBlock,
    rows: Parameters<typeof peerRowsOf>[0],
    tags: typeof rows,
  ): Promise<Refusal | undefined> {
    const { transactions, items, misplaced } = peerRowsOf(rows, tags)
    this.left.rows += misplaced
    const top = this.#top
    const isNew = top === undefined || block.height > top.height
    const refusal = isNew ? await this.#append(block, transactions, items) : this.#compare(block)
    if (refusal !== undefined) return refusal
    const { index } = this.target
    const own = new Set(transactions.map(({ id }) => id))
    if (isNew) await this.#items(items, (id) => own.has(id))
    else if (index.block(block.height) === undefined) this.left.blocks += 1
    else await this.#items(items, (id) => index.row(idBytes(id), false)?.height === block.height)
    this.#blocks += 1
    this.#place = { height: block.height, id: block.id }
    if (this.#blocks >= this.blocksAtOnce || this.#rows >= batchMax.rows) await this.#flush()
    return undefined
  }

  async end(): Promise<void> {
    await this.#flush()
    await this.#writing
    await this.target.keep()
  }

  #compare({ height, id }: PeerBlock): Refusal | undefined {
    const known = this.target.index.block(height)?.id
    if (known === undefined || known === id) return undefined
    return refused(`block ${height} of the export is on another branch than the index`)
  }

  async #append(
    block: PeerBlock,
    transactions: readonly TransactionInput[],
    items: ReadonlyMap<Id, unknown>,
  ): Promise<Refusal | undefined> {
    const { height, id, previous, sizeBytes, transactionCount } = block
    const top = this.#top
    if (top !== undefined && height !== top.height + 1)
      return refused(`the export goes on at block ${height}, but the index ends at ${top.height}`)
    if (top !== undefined && previous !== top.id)
      return refused(`block ${height} of the export is on another branch than the index`)
    if (transactions.length !== transactionCount)
      return refused(
        `block ${height} has ${transactionCount} transactions, and the export holds ${transactions.length} of them: ` +
          'export with skipL1Transactions false, or fill the index first (sluice import ADDRESS#KEY)',
      )
    const start = top?.weaveSize ?? (height === 0 ? 0 : this.#weaveStart)
    if (start === undefined)
      return refused(
        'the export says of no transaction where its data lies: fill the index first (sluice import)',
      )
    const weaveSize = start + sizeBytes
    const { sizeBytes: _, ...fields } = block
    const input: BlockInput = { ...fields, weaveSize: String(weaveSize) }
    this.#requests.push({ kind: 'index-block', block: input, transactions: packTransactions(transactions) })
    this.#rows += transactions.length
    this.#bundles.push(...transactions.filter((one) => !items.has(one.id)))
    this.#top = { height, id, weaveSize }
    return undefined
  }

  async #items(items: ReadonlyMap<Id, readonly ItemInput[]>, isRoot: (id: Id) => boolean): Promise<void> {
    for (const [rootId, all] of items) {
      if (!isRoot(rootId)) {
        this.left.items += all.length
        continue
      }
      for (let at = 0; at < all.length; at += batchMax.items) {
        const some = all.slice(at, at + batchMax.items)
        this.#requests.push({ kind: 'index-items', rootId, items: packItems(some), isUnjudged: true })
        this.#rows += some.length
        if (this.#rows >= batchMax.rows) await this.#flush()
      }
    }
  }

  async #flush(): Promise<void> {
    const [requests, bundles] = [this.#requests.splice(0), this.#bundles.splice(0)]
    const [blocks, rows, place] = [this.#blocks, this.#rows, this.#place]
    this.#blocks = 0
    this.#rows = 0
    await this.#writing
    this.target.remember(bundles)
    const written = requests.length === 0 ? Promise.resolve() : this.target.write({ kind: 'all', requests })
    this.#writing = written.then(() =>
      place === undefined ? undefined : this.target.imported(blocks, rows, place),
    )
    this.#writing.catch(() => 'thrown where it is awaited')
  }
}
