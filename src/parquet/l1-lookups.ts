import { join } from 'node:path'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row as IndexRow } from '../catalog/row.js'
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
  /** number of the tag u40, height u32: once a transaction */
  readonly #tags: RecordSort
  /** address (32 bytes), its number u40 */
  readonly #owners: RecordSort

  constructor(
    private readonly index: ChainIndex,
    private readonly folder: string,
  ) {
    this.#ids = new RecordSort(folder, 'ids', 12)
    this.#roles = new RecordSort(folder, 'roles', 21)
    this.#tags = new RecordSort(folder, 'tags', 9)
    this.#owners = new RecordSort(folder, 'owners', 37)
  }

  add(row: IndexRow, height: number, of: { id: Uint8Array; owner: Uint8Array; target: Uint8Array }): void {
    const entry = this.#ids.record
    entry.set(of.id.subarray(0, 8))
    entry.writeUInt32BE(height, 8)
    this.#ids.add()
    this.#addRole(of.owner, height, walletRole.sent, row.size)
    if (of.target.length > 0) this.#addRole(of.target, height, walletRole.received, row.size)
    for (const tag of new Set(row.tags)) {
      const posting = this.#tags.record
      posting.writeUIntBE(tag, 0, 5)
      posting.writeUInt32BE(height, 5)
      this.#tags.add()
    }
    const owner = this.#owners.record
    owner.fill(0, 0, 32).set(of.owner.subarray(0, 32))
    owner.writeUIntBE(row.owner, 32, 5)
    this.#owners.add()
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

  /** Postings by tag become one record a tag, which are sorted by the hashes of name and value. */
  *#tagRows(): Generator<ParquetRow> {
    const { dictionary } = this.index
    const byHash = new RecordSort(this.folder, 'hashes', hashedBytes)
    try {
      for (const { tag, txs, first, last } of groups(this.#tags.sort.sorted())) {
        const entry = byHash.record
        entry.writeBigUInt64BE(sha256of64(dictionary.name(tag)))
        entry.writeBigUInt64BE(sha256of64(dictionary.value(tag)), 8)
        entry.writeUIntBE(tag, 16, 5)
        entry.writeUIntBE(txs, 21, 6)
        entry.writeUInt32BE(first, 27)
        entry.writeUInt32BE(last, 31)
        byHash.add()
      }
      let same: Buffer[] = []
      for (const entry of byHash.sort.sorted()) {
        if (same[0] !== undefined && same[0].compare(entry, 0, 16, 0, 16) !== 0) {
          yield* this.#tagRowsOf(same)
          same = []
        }
        same.push(Buffer.from(entry))
      }
      yield* this.#tagRowsOf(same)
    } finally {
      byHash.sort.close()
    }
  }

  /** Rows of tags with the same hashes, by their names and values. */
  #tagRowsOf(entries: readonly Buffer[]): ParquetRow[] {
    const { dictionary } = this.index
    const rows = entries.map((entry) => {
      const tag = entry.readUIntBE(16, 5)
      const counts = [
        BigInt(entry.readUIntBE(21, 6)),
        BigInt(entry.readUInt32BE(27)),
        BigInt(entry.readUInt32BE(31)),
      ]
      return { entry, name: dictionary.name(tag), value: dictionary.value(tag), counts }
    })
    rows.sort((one, other) => one.name.compare(other.name) || one.value.compare(other.value))
    return rows.map(({ entry, name, value, counts }) => {
      return [entry.readBigUInt64BE(), entry.readBigUInt64BE(8), name, value, ...counts]
    })
  }

  #wallets(): WrittenTable {
    const file = new ParquetFile(
      join(this.folder, tableFile('wallets')),
      tableColumns.wallets,
      walletGroupRows,
    )
    let before = 0
    for (const entry of this.#owners.sort.sorted()) {
      const number = entry.readUIntBE(32, 5)
      if (number === before) continue
      before = number
      const key = this.index.ownerKey(number)
      if (key !== undefined) file.push([Buffer.from(entry.subarray(0, 32)), key])
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

/** name8 u64, val8 u64, number of the tag u40, transactions u48, first and last height u32 */
const hashedBytes = 35

function* groups(
  postings: Iterable<Buffer>,
): Generator<{ tag: number; txs: number; first: number; last: number }> {
  let group: { tag: number; txs: number; first: number; last: number } | undefined
  for (const posting of postings) {
    const tag = posting.readUIntBE(0, 5)
    const height = posting.readUInt32BE(5)
    if (group?.tag === tag) {
      group.txs += 1
      group.last = height
    } else {
      if (group !== undefined) yield group
      group = { tag, txs: 1, first: height, last: height }
    }
  }
  if (group !== undefined) yield group
}
