import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../actor/clock.js'
import { unpackBlockHeader } from '../catalog/block-header.js'
import type { BlockRecord } from '../catalog/block-record.js'
import { Effort } from '../catalog/effort.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row as IndexRow, RowTransfer } from '../catalog/row.js'
import { isNamed } from '../format/media-type.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { bandFile, type L1Band, l1Id } from './l1-band.js'
import { l1Schema, type ParquetRow, tableColumns, tableFile, txRootSince } from './l1-layout.js'
import { Lookups } from './l1-lookups.js'
import { ParquetFile } from './parquet-writer.js'

/** Rows of a row group of the five tables. */
const tableGroupRows = 65_536
/** Rows of the index read at once. */
const pageRows = 1000

export interface L1Order {
  /** Inclusive; on the grid (`l1Ranges`). */
  readonly from: number
  readonly to: number
  /** Name of the publisher, from which a part of the band's id is derived. */
  readonly publisher: string
  /** Keeps the transactions' signatures too. Their band has other rows, and so another id, than those without. */
  readonly signatures?: boolean
  readonly supersedes?: readonly string[]
}

export interface BuiltL1 {
  readonly id: string
  readonly band: L1Band
}

/**
 * Builds the Parquet band of some heights out of the index, into the empty folder `folder`; the caller renames it to
 * its place. Refuses where the index does not have all of it: blocks or transactions are missing, or blocks were
 * indexed before their headers were kept. Reads stretch by stretch, so memory is flat and the thread does other
 * things in between.
 */
export async function buildL1(
  index: ChainIndex,
  folder: string,
  order: L1Order,
  clock: Clock,
  signal?: AbortSignal,
): Promise<BuiltL1 | Refusal> {
  const tables = new L1Tables(index, folder, order.signatures === true)
  try {
    for (let height = order.from; height <= order.to; height += pageRows) {
      index.refresh()
      const refusal = tables.addBlocks(height, Math.min(height + pageRows - 1, order.to), clock)
      if (refusal !== undefined) return refusal
      await turn()
      signal?.throwIfAborted()
    }
    const { from, to, supersedes = [] } = order
    const band: L1Band = {
      version: 1,
      schema: l1Schema,
      heightRange: [from, to],
      ...tables.finish(),
      ...(supersedes.length === 0 ? {} : { supersedes }),
      createdAt: new Date(clock.now()).toISOString(),
    }
    writeFileSync(join(folder, bandFile), `${JSON.stringify(band, undefined, 2)}\n`, { flush: true })
    return { id: l1Id(band, order.publisher), band }
  } finally {
    tables.drop()
  }
}

/** The tables of one band while they grow, block by block. */
class L1Tables {
  readonly #files
  readonly #lookups: Lookups
  #previous: BlockRecord | undefined

  constructor(
    private readonly index: ChainIndex,
    folder: string,
    private readonly signatures: boolean,
  ) {
    const file = (name: keyof typeof tableColumns): ParquetFile =>
      new ParquetFile(join(folder, tableFile(name)), tableColumns[name], tableGroupRows)
    this.#files = {
      blocks: file('blocks'),
      block_transactions: file('block_transactions'),
      transactions: file('transactions'),
      tags: file('tags'),
    }
    this.#lookups = new Lookups(index, folder)
  }

  /** Adds the blocks of these heights (inclusive) with their transactions. */
  addBlocks(from: number, to: number, clock: Clock): Refusal | undefined {
    const blocks = this.index.blocks(from, to, false, to - from + 1)
    const rows = this.#transactionsOf(from, to, clock)
    let row = rows.next()
    for (let height = from; height <= to; height += 1) {
      const block = blocks[height - from]
      if (block?.height !== height) return incomplete(`block ${height} is not in the index`)
      const own: IndexRow[] = []
      for (; !row.done && row.value.height === height; row = rows.next()) own.push(row.value)
      const refusal = this.#addBlock(block, own)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  finish(): Pick<L1Band, 'tables' | 'lookups'> {
    const { blocks, block_transactions, transactions, tags } = this.#files
    const { wallets, ...lookups } = this.#lookups.finish()
    return {
      tables: {
        blocks: blocks.finish(),
        block_transactions: block_transactions.finish(),
        transactions: transactions.finish(),
        tags: tags.finish(),
        wallets,
      },
      lookups,
    }
  }

  drop(): void {
    this.#lookups.drop()
  }

  *#transactionsOf(minHeight: number, maxHeight: number, clock: Clock): Generator<IndexRow> {
    const wanted = { bundledIn: null, minHeight, maxHeight }
    let after: Uint8Array | undefined
    for (;;) {
      const effort = new Effort(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, clock)
      const request = { backwards: false, limit: pageRows, ...(after === undefined ? {} : { after }) }
      const page = this.index.rows(wanted, request, effort)
      yield* page.entries
      after = page.entries.at(-1)?.key
      if (!page.more || after === undefined) return
    }
  }

  #addBlock(block: BlockRecord, rows: readonly IndexRow[]): Refusal | undefined {
    const { height } = block
    if (block.header === undefined) {
      return incomplete(
        `block ${height} was indexed by a version that did not keep its header: index it anew`,
      )
    }
    const inPlace = rows.every((row, at) => row.index === at)
    if (rows.length !== block.transactionCount || !inPlace) {
      return incomplete(
        `the index has ${rows.length} of ${block.transactionCount} transactions of block ${height}`,
      )
    }
    const before = this.#previous ?? (height === 0 ? undefined : this.index.block(height - 1))
    if (before !== undefined && before.id !== block.previous) {
      return incomplete(`block ${height} does not follow block ${height - 1}: the chain changed meanwhile`)
    }
    this.#previous = block
    this.#files.blocks.push(blockRow(block, block.header))
    for (const row of rows) this.#addTransaction(row, height)
    this.#addTags(rows, height)
    return undefined
  }

  #addTransaction(row: IndexRow, height: number): void {
    const { transfer, owner, recipient: target } = row
    if (transfer === undefined) throw new Error('a transaction of the index has no transfer')
    const id = Buffer.from(row.id)
    this.#files.block_transactions.push([BigInt(height), row.index, id])
    this.#files.transactions.push([
      id,
      row.index,
      false,
      target,
      transfer.quantity,
      transfer.reward,
      row.anchor,
      BigInt(row.size),
      this.#tagText(row, 'content-type'),
      transfer.format,
      BigInt(height),
      owner,
      dataRootOf(transfer),
      transfer.weaveEnd === 0 ? null : BigInt(transfer.weaveEnd),
      this.#tagText(row, 'content-encoding'),
      row.tags.length,
      this.signatures ? (row.signature ?? null) : null,
    ])
    this.#lookups.add(row, height, { id, owner, target })
  }

  /** Value of the first tag with this name, in whatever letters it is written. */
  #tagText(row: IndexRow, name: string): string | null {
    const tag = row.tags.find((one) => isNamed(one.name, name))
    return tag === undefined ? null : tag.value.toString('utf8')
  }

  #addTags(rows: readonly IndexRow[], height: number): void {
    const tagged = rows.filter(({ tags }) => tags.length > 0)
    for (const { id, tags } of tagged.sort((one, other) => Buffer.compare(one.id, other.id))) {
      for (const [at, tag] of tags.entries()) {
        this.#files.tags.push([BigInt(height), id, at, tag.name, tag.value, false])
      }
    }
  }
}

function incomplete(message: string): Refusal {
  return refuse('unknown', 'self', message)
}

function dataRootOf({ format, dataRoot }: RowTransfer): Uint8Array | null {
  return format === 1 ? null : dataRoot
}

function blockRow(block: BlockRecord, packed: Uint8Array): ParquetRow {
  const header = unpackBlockHeader(packed)
  const whole = (text: string | undefined): bigint | null => (text === undefined ? null : BigInt(text))
  return [
    Buffer.from(block.id, 'base64url'),
    BigInt(block.height),
    Buffer.from(block.previous, 'base64url'),
    header.nonce ?? null,
    header.hash ?? null,
    BigInt(block.timestamp),
    block.transactionCount,
    whole(header.blockSize),
    header.difficulty ?? null,
    header.cumulativeDifficulty ?? null,
    whole(header.lastRetarget),
    header.rewardAddress ?? null,
    header.rewardPool ?? null,
    BigInt(block.weaveSize),
    whole(header.rate?.[0]),
    whole(header.rate?.[1]),
    whole(header.scheduledRate?.[0]),
    whole(header.scheduledRate?.[1]),
    header.hashListMerkle ?? null,
    header.walletList ?? null,
    block.height < txRootSince ? null : (header.txRoot ?? null),
  ]
}
