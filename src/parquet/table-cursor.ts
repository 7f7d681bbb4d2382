import type { Value } from './l1-layout.js'
import { ParquetFault, type ParquetTable } from './parquet-reader.js'

/** Rows of one block, which are held together: more than any block of the chain has. */
const rowsAtMax = 8_000_000

/** The rows of a table, one by one. */
export class Cursor {
  readonly #batches: AsyncGenerator<Value[][]>
  #rows: Value[][] = []
  #at = 0

  constructor(table: Pick<ParquetTable, 'batches'>) {
    this.#batches = table.batches()
  }

  async next(): Promise<Value[] | undefined> {
    if (this.#at === this.#rows.length && !(await this.#load())) return undefined
    this.#at += 1
    return this.#rows[this.#at - 1]
  }

  /** Passes over the rows that have less than `height` in this column; returns how many. */
  async skipTo(height: bigint, column: number): Promise<number> {
    let skipped = 0
    for (;;) {
      if (this.#at === this.#rows.length && !(await this.#load())) return skipped
      const value = this.#rows[this.#at]?.[column]
      if (typeof value !== 'bigint') throw new ParquetFault('a height is missing')
      if (value >= height) return skipped
      this.#at += 1
      skipped += 1
    }
  }

  /** The rows that have `height` in this column and come next. */
  async at(height: bigint, column: number): Promise<Value[][]> {
    const found: Value[][] = []
    for (;;) {
      if (this.#at === this.#rows.length && !(await this.#load())) return found
      const row = this.#rows[this.#at]
      if (row === undefined || row[column] !== height) return found
      found.push(row)
      if (found.length > rowsAtMax)
        throw new ParquetFault(`more than ${rowsAtMax} rows have height ${height}`)
      this.#at += 1
    }
  }

  /** Closes what it reads from, wherever it is. */
  async close(): Promise<void> {
    await this.#batches.return(undefined)
  }

  async #load(): Promise<boolean> {
    const step = await this.#batches.next()
    this.#rows = step.done === true ? [] : step.value
    this.#at = 0
    return this.#rows.length > 0
  }
}

/** The bytes of a column that is never null. Throws `ParquetFault`. */
export function bytesIn(value: Value | undefined): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw new ParquetFault('bytes are missing')
}

/** The number of a column that is never null, up to 2^53. Throws `ParquetFault`. */
export function numberIn(value: Value | undefined): number {
  const number = Number(value)
  if (value !== null && Number.isSafeInteger(number) && number >= 0) return number
  throw new ParquetFault('a number is missing, or beyond 2^53')
}
