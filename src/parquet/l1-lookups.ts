import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row as IndexRow, RowTag } from '../catalog/row.js'
import { ExternalSort } from '../store/external-sort.js'
import {
  lookupColumns,
  lookupFile,
  type ParquetRow,
  prefix64,
  sha256of64,
  tableColumns,
  tableFile,
  walletRole,
} from './l1-layout.js'
import { ParquetFile, type WrittenTable } from './parquet-writer.js'
import { TagSpool } from './tag-spool.js'

/** Rows of a row group of a lookup: one query has to decompress a whole group. */
const lookupGroupRows = 16_384
const walletGroupRows = 65_536

/**
 * The parts of a band that are not in chain order: three lookups and the wallets. Collected while the chain is read,
 * as records of a fixed size that are sorted on disk.
 */
export class Lookups {
  /** id8 u64, height u32 */
  readonly #ids: RecordSort
  /** addr8 u64, height u32, role u8, data size u64 */
  readonly #roles: RecordSort
  /** name8 u64, val8 u64, hash of both (16 bytes), height u32, place in the file of texts u48: once a transaction */
  readonly #tags: RecordSort
  readonly #texts: TagSpool
  /** address (32 bytes) */
  readonly #owners: RecordSort

  constructor(
    private readonly index: ChainIndex,
    private readonly folder: string,
  ) {
    this.#ids = new RecordSort(folder, 'ids', 12)
    this.#roles = new RecordSort(folder, 'roles', 21)
    this.#tags = new RecordSort(folder, 'tags', tagRecordBytes)
    this.#owners = new RecordSort(folder, 'owners', 32)
    this.#texts = new TagSpool(join(folder, 'tag-texts'))
  }

  add(row: IndexRow, height: number, of: { id: Uint8Array; owner: Uint8Array; target: Uint8Array }): void {
    const entry = this.#ids.record
    entry.set(of.id.subarray(0, 8))
    entry.writeUInt32BE(height, 8)
    this.#ids.add()
    this.#addRole(of.owner, height, walletRole.sent, row.size)
    if (of.target.length > 0) this.#addRole(of.target, height, walletRole.received, row.size)
    this.#addTags(row, height)
    this.#owners.record.fill(0).set(of.owner.subarray(0, 32))
    this.#owners.add()
  }

  #addTags({ tags }: IndexRow, height: number): void {
    const seen = new Set<string>()
    for (const tag of tags) {
      const hash = tagHash(tag)
      const text = hash.toString('latin1')
      if (seen.has(text)) continue
      seen.add(text)
      const posting = this.#tags.record
      posting.writeBigUInt64BE(sha256of64(tag.name))
      posting.writeBigUInt64BE(sha256of64(tag.value), 8)
      posting.set(hash, 16)
      posting.writeUInt32BE(height, heightAt)
      posting.writeUIntBE(this.#texts.put(text, tag), placeAt, 6)
      this.#tags.add()
    }
  }

  finish(): { tx_id: WrittenTable; wallet: WrittenTable; tag: WrittenTable; wallets: WrittenTable } {
    return {
      tx_id: this.#write('tx_id', this.#idRows()),
      wallet: this.#write('wallet', this.#roleRows()),
      tag: this.#write('tag', this.#tagRows()),
      wallets: this.#wallets(),
    }
  }

  /** Removes what is left on disk of the sorting. */
  drop(): void {
    for (const { sort } of [this.#ids, this.#roles, this.#tags, this.#owners]) sort.close()
    this.#texts.close()
  }

  #addRole(address: Uint8Array, height: number, role: number, sizeBytes: number): void {
    const entry = this.#roles.record
    entry.writeBigUInt64BE(prefix64(address))
    entry.writeUInt32BE(height, 8)
    entry[12] = role
    entry.writeBigUInt64BE(BigInt(sizeBytes), 13)
    this.#roles.add()
  }

  #write(name: keyof typeof lookupColumns, rows: Iterable<ParquetRow>): WrittenTable {
    const file = new ParquetFile(join(this.folder, lookupFile(name)), lookupColumns[name], lookupGroupRows)
    for (const row of rows) file.push(row)
    return file.finish()
  }

  *#idRows(): Generator<ParquetRow> {
    for (const entry of this.#ids.sort.sorted())
      yield [entry.readBigUInt64BE(), BigInt(entry.readUInt32BE(8))]
  }

  *#roleRows(): Generator<ParquetRow> {
    for (const entry of this.#roles.sort.sorted()) {
      const [address, sizeBytes] = [entry.readBigUInt64BE(), entry.readBigUInt64BE(13)]
      yield [address, entry.readUInt8(12), BigInt(entry.readUInt32BE(8)), sizeBytes]
    }
  }

  /** Tags by the hashes of name and value, one row for each. */
  *#tagRows(): Generator<ParquetRow> {
    let same: TagGroup[] = []
    for (const group of groups(this.#tags.sort.sorted())) {
      if (same[0] !== undefined && same[0].entry.compare(group.entry, 0, 16, 0, 16) !== 0) {
        yield* this.#tagRowsOf(same)
        same = []
      }
      same.push(group)
    }
    yield* this.#tagRowsOf(same)
  }

  /** Rows of tags with the same hashes in the table, by their names and values. */
  #tagRowsOf(same: readonly TagGroup[]): ParquetRow[] {
    const rows = same.map((group) => ({ ...group, ...this.#texts.at(group.entry.readUIntBE(placeAt, 6)) }))
    rows.sort((one, other) => one.name.compare(other.name) || one.value.compare(other.value))
    return rows.map(({ entry, name, value, txs, first, last }) => {
      const counts = [BigInt(txs), BigInt(first), BigInt(last)]
      return [entry.readBigUInt64BE(), entry.readBigUInt64BE(8), name, value, ...counts]
    })
  }

  #wallets(): WrittenTable {
    const file = new ParquetFile(
      join(this.folder, tableFile('wallets')),
      tableColumns.wallets,
      walletGroupRows,
    )
    let before: Buffer | undefined
    for (const entry of this.#owners.sort.sorted()) {
      if (before?.equals(entry) === true) continue
      before = Buffer.from(entry)
      const key = this.index.ownerKey(before)
      if (key !== undefined) file.push([before, key])
    }
    return file.finish()
  }
}

/** Records of a fixed size, sorted by all of their bytes. */
class RecordSort {
  /** The next record, to be filled whole before `add`. */
  readonly record: Buffer
  readonly sort: ExternalSort

  constructor(folder: string, name: string, keyBytes: number) {
    this.record = Buffer.alloc(keyBytes)
    // Five of them are there at once: 4 MiB of blocks each, and 5 MiB while one is read.
    const options = { keyBytes, unique: false, bucketMaxBytes: 2 * 2 ** 20, blockBytes: 16 * 1024 }
    this.sort = new ExternalSort(folder, name, options)
  }

  add(): void {
    this.sort.add(this.record)
  }
}

/** Where the height and the place in the file of texts stand in a record of a tag. */
const heightAt = 32
const placeAt = 36
const tagRecordBytes = 42

/** A tag of the band: its first record, and what its records say. */
interface TagGroup {
  readonly entry: Buffer
  txs: number
  readonly first: number
  last: number
}

function* groups(postings: Iterable<Buffer>): Generator<TagGroup> {
  let group: TagGroup | undefined
  for (const posting of postings) {
    const height = posting.readUInt32BE(heightAt)
    if (group !== undefined && group.entry.compare(posting, 0, heightAt, 0, heightAt) === 0) {
      group.txs += 1
      group.last = height
    } else {
      if (group !== undefined) yield group
      group = { entry: Buffer.from(posting), txs: 1, first: height, last: height }
    }
  }
  if (group !== undefined) yield group
}

/** Distinguishes a tag from all others: what the table has of the hashes of name and value is too short for that. */
function tagHash({ name, value }: RowTag): Buffer {
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32BE(name.length)
  return createHash('sha256').update(length).update(name).update(value).digest().subarray(0, 16)
}
