import { join } from 'node:path'
import { packBlockHeader } from '../catalog/block-header.js'
import type { CatalogRequest } from '../catalog/catalog-messages.js'
import type { BlockInput, TransactionInput } from '../catalog/index-protocol.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { packOwners, packTransactions } from '../catalog/pack.js'
import { encodeBase64url } from '../format/base64url.js'
import { idOfBytes } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Tag } from '../format/tag.js'
import type { L1Band } from './l1-band.js'
import { type TableName, tableColumns, tableFile, type Value } from './l1-layout.js'
import { openParquet, ParquetFault, type ParquetTable } from './parquet-reader.js'
import { bytesIn, Cursor, numberIn } from './table-cursor.js'

/** One message to the keeper holds so many blocks or transactions, then it is sent. */
const batchMax = { blocks: 200, transactions: 4000, owners: 4000 }

/** Where an imported band goes. */
export interface L1Target {
  readonly index: ChainIndex
  /** Resolves when the keeper has taken it: what follows is in the index only with it. */
  write(request: CatalogRequest): Promise<void>
  /** Resolves when all that was written is in the index. */
  keep(): Promise<void>
  /** Transactions that are about to enter the index: what is to be done with them later is on disk when this returns. */
  remember(transactions: readonly TransactionInput[]): void
  /** So many blocks and transactions more were taken. */
  imported(blocks: number, transactions: number): void
}

/**
 * Puts a band that was checked (`checkL1`) into the index, behind what is there. The range must go on from the
 * index's top, on the same chain, or the index be empty. Blocks that are there already are skipped, so a second call
 * resumes where the first was killed; each commit holds whole blocks. Rejects where the catalog is lost.
 */
export async function importL1(folder: string, band: L1Band, target: L1Target): Promise<Refusal | undefined> {
  target.index.refresh()
  const [from, to] = band.heightRange
  const top = target.index.topHeight()
  if (top !== undefined && top >= to) return undefined
  if (top !== undefined && from > top + 1) {
    return bad(`${folder} begins at ${from}: the index ends at ${top}, and what is between is missing`)
  }
  const open: ParquetTable[] = []
  const cursor = async (name: TableName): Promise<Cursor | Refusal> => {
    const table = await openParquet(join(folder, tableFile(name)), tableColumns[name])
    if (isRefusal(table)) return table
    open.push(table)
    return new Cursor(table)
  }
  try {
    const [blocks, transactions, tags, wallets] = [
      await cursor('blocks'),
      await cursor('transactions'),
      await cursor('tags'),
      await cursor('wallets'),
    ]
    for (const one of [blocks, transactions, tags, wallets]) if (isRefusal(one)) return one
    await importOwners(wallets as Cursor, target)
    const chain = new Joined(blocks as Cursor, transactions as Cursor, tags as Cursor)
    return await importBlocks(chain, target, top)
  } catch (error) {
    if (error instanceof ParquetFault) return bad(error.message)
    throw error
  } finally {
    await Promise.all(open.map((table) => table.close()))
  }
}

function bad(message: string): Refusal {
  return refuse('malformed', 'upstream', message)
}

async function importOwners(wallets: Cursor, target: L1Target): Promise<void> {
  let owners: { address: Uint8Array; key: Uint8Array }[] = []
  const flush = async (): Promise<void> => {
    if (owners.length > 0) await target.write({ kind: 'index-owners', owners: packOwners(owners) })
    owners = []
  }
  for (let row = await wallets.next(); row !== undefined; row = await wallets.next()) {
    owners.push({ address: bytesIn(row[0]), key: bytesIn(row[1]) })
    if (owners.length === batchMax.owners) await flush()
  }
  await flush()
}

async function importBlocks(
  chain: Joined,
  target: L1Target,
  top: number | undefined,
): Promise<Refusal | undefined> {
  let batch: { block: BlockInput; transactions: TransactionInput[] }[] = []
  let transactions = 0
  /** The message before this one: it is committed while the next gathers. */
  let writing = Promise.resolve()
  const flush = async (): Promise<void> => {
    const full = batch
    const [blocks, rows] = [full.length, transactions]
    batch = []
    transactions = 0
    await writing
    if (blocks === 0) return
    target.remember(full.flatMap((one) => one.transactions))
    const requests = full.map(
      (one): CatalogRequest => ({
        kind: 'index-block',
        block: one.block,
        transactions: packTransactions(one.transactions),
      }),
    )
    writing = target.write({ kind: 'all', requests }).then(() => target.imported(blocks, rows))
    writing.catch(() => 'thrown where it is awaited')
  }
  for (let one = await chain.next(); one !== undefined; one = await chain.next()) {
    const { block } = one
    const ours = target.index.block(top === block.height - 1 ? top : block.height)?.id
    const follows =
      top === block.height - 1 ? ours === block.previous : ours === undefined || ours === block.id
    if (!follows) return bad(`block ${block.height} of the band is on another branch than the index`)
    if (top !== undefined && block.height <= top) continue
    batch.push(one)
    transactions += one.transactions.length
    if (batch.length >= batchMax.blocks || transactions >= batchMax.transactions) await flush()
  }
  await flush()
  await writing
  await target.keep()
  return undefined
}

/** Blocks with their transactions, and these with their tags, out of three tables in the order of heights. */
class Joined {
  constructor(
    private readonly blocks: Cursor,
    private readonly transactions: Cursor,
    private readonly tags: Cursor,
  ) {}

  async next(): Promise<{ block: BlockInput; transactions: TransactionInput[] } | undefined> {
    const row = await this.blocks.next()
    if (row === undefined) return undefined
    const height = row[1]
    if (typeof height !== 'bigint') throw new ParquetFault('a block has no height')
    const tags = new Map<string, Tag[]>()
    for (const [, id, , name, value] of await this.tags.at(height, 0)) {
      const key = Buffer.from(bytesIn(id)).toString('latin1')
      const tag = { name: bytesIn(name), value: bytesIn(value) }
      const known = tags.get(key)
      if (known === undefined) tags.set(key, [tag])
      else known.push(tag)
    }
    const rows = await this.transactions.at(height, 10)
    const transactions = rows.map((one) => {
      return transactionIn(one, tags.get(Buffer.from(bytesIn(one[0])).toString('latin1')) ?? [])
    })
    const block = blockIn(row)
    if (block.transactionCount !== rows.length) throw new ParquetFault(`block ${height} lacks transactions`)
    return { block, transactions }
  }
}

const empty = new Uint8Array(0)

function transactionIn(row: readonly Value[], tags: readonly Tag[]): TransactionInput {
  const [id, index, , target, quantity, reward, anchor, size, , format] = row
  const [address, dataRoot, offset, , , signature] = row.slice(11)
  if (typeof quantity !== 'bigint' || typeof reward !== 'bigint' || quantity < 0n || reward < 0n) {
    throw new ParquetFault('an amount is missing, or below zero')
  }
  return {
    id: idOfBytes(bytesIn(id)),
    index: numberIn(index),
    size: numberIn(size),
    owner: empty,
    ownerAddress: bytesIn(address),
    target: target === null ? empty : bytesIn(target),
    anchor: anchor === null ? empty : bytesIn(anchor),
    tags,
    format: numberIn(format),
    quantity,
    reward,
    dataRoot: dataRoot === null ? empty : bytesIn(dataRoot),
    weaveEnd: offset === null ? 0 : numberIn(offset),
    ...(signature === null ? {} : { signature: bytesIn(signature) }),
  }
}

function blockIn(row: readonly Value[]): BlockInput {
  const [id, height, previous, nonce, hash, timestamp, count, blockSize, difficulty, cumulative] = row
  const [retarget, rewardAddress, rewardPool, weaveSize] = row.slice(10)
  const [dividend, divisor, nextDividend, nextDivisor, hashList, walletList, txRoot] = row.slice(14)
  const blob = (value: Value | undefined): Uint8Array | undefined =>
    value instanceof Uint8Array ? value : undefined
  const text = (value: Value | undefined): string | undefined =>
    typeof value === 'string' || typeof value === 'bigint' ? String(value) : undefined
  const rate = (one: Value | undefined, other: Value | undefined): [string, string] | undefined =>
    typeof one === 'bigint' && typeof other === 'bigint' ? [String(one), String(other)] : undefined
  const fields = {
    nonce: blob(nonce),
    hash: blob(hash),
    blockSize: text(blockSize),
    difficulty: text(difficulty),
    cumulativeDifficulty: text(cumulative),
    lastRetarget: text(retarget),
    rewardPool: text(rewardPool),
    rewardAddress: blob(rewardAddress),
    rate: rate(dividend, divisor),
    scheduledRate: rate(nextDividend, nextDivisor),
    hashListMerkle: blob(hashList),
    walletList: blob(walletList),
    txRoot: blob(txRoot),
  }
  const header = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  return {
    height: numberIn(height),
    id: encodeBase64url(bytesIn(id)),
    previous: encodeBase64url(bytesIn(previous)),
    timestamp: numberIn(timestamp),
    weaveSize: String(numberIn(weaveSize)),
    transactionCount: numberIn(count),
    header: packBlockHeader(header),
  }
}
