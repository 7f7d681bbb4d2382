import { join } from 'node:path'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { sha256 } from '../proof/digest.js'
import type { L1Band } from './l1-band.js'
import {
  type Columns,
  lookupColumns,
  lookupFile,
  lookupNames,
  type TableName,
  tableColumns,
  tableFile,
  tableNames,
  type Value,
} from './l1-layout.js'
import { openParquet, ParquetFault } from './parquet-reader.js'
import type { WrittenTable } from './parquet-writer.js'
import { RowDigest } from './row-digest.js'

/**
 * Reads all of a band, and returns what is wrong with it. Checks every file's schema, rows and digest. Blocks must be at every
 * height of the range, each behind the one before. All tables must have the same transactions, in order, and keys their
 * addresses. That the range is on the chain shows when the follower goes on from its top.
 */
export async function checkL1(folder: string, band: L1Band): Promise<Refusal | undefined> {
  const sense = new Sense(band.heightRange)
  for (const name of tableNames) {
    const columns: Columns = tableColumns[name]
    const visit = (row: readonly Value[]): void => sense.see(name, row)
    const refusal = await checkTable(join(folder, tableFile(name)), columns, band.tables[name], visit)
    if (refusal !== undefined) return refusal
  }
  for (const name of lookupNames) {
    const columns: Columns = lookupColumns[name]
    const refusal = await checkTable(join(folder, lookupFile(name)), columns, band.lookups[name])
    if (refusal !== undefined) return refusal
  }
  const fault = sense.end()
  return fault === undefined ? undefined : refuse('malformed', 'upstream', `${folder}: ${fault}`)
}

async function checkTable(
  path: string,
  columns: Columns,
  stated: WrittenTable,
  visit: (row: readonly Value[]) => void = () => undefined,
): Promise<Refusal | undefined> {
  const bad = (why: string): Refusal => refuse('malformed', 'upstream', why)
  const table = await openParquet(path, columns)
  if (isRefusal(table)) return table
  try {
    if (table.rows !== stated.rows)
      return bad(`${path}: ${table.rows} rows where band.json says ${stated.rows}`)
    const digest = new RowDigest()
    for await (const rows of table.batches()) {
      for (const row of rows) {
        visit(row)
        digest.add(row)
      }
    }
    return digest.hex() === stated.rowDigest ? undefined : bad(`${path}: its rows have another digest`)
  } catch (error) {
    if (error instanceof ParquetFault) return bad(error.message)
    throw error
  } finally {
    await table.close()
  }
}

/** Checks that the rows of the five tables are consistent; they are read table by table. */
class Sense {
  #next: number
  #blockId: Uint8Array | undefined
  #txs = {
    expected: new SetSum(),
    listed: new SetSum(),
    rows: new SetSum(),
    tagged: new SetSum(),
    tags: new SetSum(),
  }
  #listing = { height: -1, count: 0 }
  #transaction = { height: -1, index: -1 }
  #tagging: { height: number; id: Uint8Array; count: number } | undefined
  #address: Uint8Array | undefined

  constructor(private readonly range: readonly [number, number]) {
    this.#next = range[0]
  }

  see(table: TableName, row: readonly Value[]): void {
    if (table === 'blocks') this.#block(row)
    else if (table === 'block_transactions') this.#listed(row)
    else if (table === 'transactions') this.#row(row)
    else if (table === 'tags') this.#tag(row)
    else this.#wallet(row)
  }

  /** Why the tables do not fit each other, after all were seen. */
  end(): string | undefined {
    this.#endListing()
    this.#endTagging()
    const { expected, listed, rows, tagged, tags } = this.#txs
    if (this.#next !== this.range[1] + 1) return `its blocks end at ${this.#next - 1}`
    if (expected.value !== this.#counts.value) return 'its blocks count other transactions than they list'
    if (listed.value !== rows.value) return 'its transactions are not those that its blocks list'
    return tagged.value === tags.value ? undefined : 'its tags are not those that its transactions count'
  }

  readonly #counts = new SetSum()

  #block([id, height, previous, , , , count]: readonly Value[]): void {
    if (Number(height) !== this.#next)
      throw new ParquetFault(`block ${String(height)} where ${this.#next} is next`)
    const first = this.#next === 0
    if (!(id instanceof Uint8Array) || id.length !== 48)
      throw new ParquetFault(`block ${this.#next} has no id`)
    if (!(previous instanceof Uint8Array) || previous.length !== (first ? 0 : 48)) {
      throw new ParquetFault(`block ${this.#next} names no block before it`)
    }
    if (this.#blockId !== undefined && Buffer.compare(this.#blockId, previous) !== 0) {
      throw new ParquetFault(`block ${this.#next} does not follow block ${this.#next - 1}`)
    }
    this.#blockId = id
    if (typeof count !== 'number' || count < 0) throw new ParquetFault(`block ${this.#next} has no tx_count`)
    if (count > 0) this.#txs.expected.add(this.#next, count)
    this.#next += 1
  }

  #listed([heightValue, index, id]: readonly Value[]): void {
    const height = Number(heightValue)
    if (height !== this.#listing.height) {
      if (height < this.#listing.height) throw new ParquetFault('block_transactions is out of order')
      this.#endListing()
      this.#listing = { height, count: 0 }
    }
    if (index !== this.#listing.count) throw new ParquetFault(`block ${height} leaves out a transaction`)
    this.#listing.count += 1
    this.#txs.listed.add(height, this.#listing.count, idOf(id))
  }

  #endListing(): void {
    const { height, count } = this.#listing
    if (count > 0) this.#counts.add(height, count)
    this.#listing = { height, count: 0 }
  }

  #row(row: readonly Value[]): void {
    const [id, index, isItem] = row
    const height = Number(row[10])
    const tags = row[15]
    const { height: before, index: last } = this.#transaction
    const inOrder = height > before || (height === before && Number(index) > last)
    if (isItem !== false || !inOrder)
      throw new ParquetFault('transactions is out of order, or has data items')
    const whole = [row[4], row[5], row[7], row[9]].every((value) => value !== null)
    const owner = row[11]
    if (!whole || !(owner instanceof Uint8Array) || owner.length !== 32 || typeof tags !== 'number') {
      throw new ParquetFault(`a transaction of block ${height} is not whole`)
    }
    this.#transaction = { height, index: Number(index) }
    this.#txs.rows.add(height, Number(index) + 1, idOf(id))
    if (tags > 0) this.#txs.tagged.add(height, tags, idOf(id))
  }

  #tag([heightValue, idValue, index, name, value, isItem]: readonly Value[]): void {
    const height = Number(heightValue)
    const id = idOf(idValue)
    const before = this.#tagging
    if (before === undefined || before.height !== height || Buffer.compare(before.id, id) !== 0) {
      const inOrder =
        before === undefined ||
        height > before.height ||
        (height === before.height && Buffer.compare(before.id, id) < 0)
      if (!inOrder) throw new ParquetFault('tags is out of order')
      this.#endTagging()
      this.#tagging = { height, id, count: 0 }
    }
    const now = this.#tagging
    const whole = name instanceof Uint8Array && value instanceof Uint8Array && isItem === false
    if (now === undefined || now.count !== index || !whole)
      throw new ParquetFault(`a tag of block ${height} is not whole`)
    now.count += 1
  }

  #endTagging(): void {
    if (this.#tagging !== undefined)
      this.#txs.tags.add(this.#tagging.height, this.#tagging.count, this.#tagging.id)
    this.#tagging = undefined
  }

  #wallet([address, key]: readonly Value[]): void {
    const right =
      address instanceof Uint8Array && key instanceof Uint8Array && Buffer.compare(sha256(key), address) === 0
    const inOrder = right && (this.#address === undefined || Buffer.compare(this.#address, address) < 0)
    if (!right || !inOrder) throw new ParquetFault('wallets is out of order, or a key has another address')
    this.#address = address
  }
}

function idOf(id: Value | undefined): Uint8Array {
  if (!(id instanceof Uint8Array) || id.length !== 32) throw new ParquetFault('an id is not 32 bytes')
  return id
}

/** A sum over entries that does not depend on their order: the same entries, the same sum. */
class SetSum {
  value = 0n
  readonly #entry = Buffer.alloc(44)

  add(height: number, count: number, id?: Uint8Array): void {
    this.#entry.fill(0)
    this.#entry.writeUIntBE(height, 0, 6)
    this.#entry.writeUIntBE(count, 6, 6)
    if (id !== undefined) this.#entry.set(id, 12)
    const digest = sha256(this.#entry)
    const view = new DataView(digest.buffer, digest.byteOffset)
    this.value += (view.getBigUint64(0) << 64n) | view.getBigUint64(8)
  }
}
