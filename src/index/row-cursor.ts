import type { GroupTable } from './groups.js'
import type { RowListReader } from './row-list.js'

/** Rows of one segment in one direction: ascending, or descending where it goes backwards. Begins in front of its first: seek. */
export interface RowCursor {
  /** Where it stands; -1 at its end. */
  readonly row: number
  /** Goes to the first row at or behind `row`, in its direction. Never goes back. */
  seek(row: number): void
  next(): void
}

/** The rows of one list. */
export class ListCursor implements RowCursor {
  row = -1
  #at = 0

  constructor(
    private readonly list: RowListReader,
    private readonly backwards: boolean,
  ) {}

  seek(row: number): void {
    const { list, backwards } = this
    const { rows } = list
    const isHere =
      list.block >= 0 &&
      (backwards ? (rows[0] as number) <= row : (rows[list.filled - 1] as number) >= row) &&
      this.row >= 0
    if (!isHere) list.load(list.blockOf(row))
    let [low, high] = [0, list.filled]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((rows[middle] as number) < row) low = middle + 1
      else high = middle
    }
    this.#stand(backwards && (low === list.filled || rows[low] !== row) ? low - 1 : low)
  }

  next(): void {
    this.#stand(this.#at + (this.backwards ? -1 : 1))
  }

  /** Stands at a place of the block, or at the nearest end of the block beside it. */
  #stand(at: number): void {
    const { list, backwards } = this
    this.#at = at
    if (at >= 0 && at < list.filled) {
      this.row = list.rows[at] as number
      return
    }
    const block = list.block + (backwards ? -1 : 1)
    if (block < 0 || block >= list.blockCount) {
      this.row = -1
      return
    }
    list.load(block)
    this.#at = backwards ? list.filled - 1 : 0
    this.row = list.rows[this.#at] as number
  }
}

/** All rows. */
export class AllCursor implements RowCursor {
  row = -1

  constructor(
    private readonly count: number,
    private readonly backwards: boolean,
  ) {}

  seek(row: number): void {
    this.row = row >= this.count ? -1 : row
  }

  next(): void {
    if (this.backwards) this.row -= 1
    else this.seek(this.row + 1)
  }
}

/** Transactions of the base layer, without the items. */
export class TransactionCursor implements RowCursor {
  row = -1
  #group = 0

  constructor(
    private readonly groups: GroupTable,
    private readonly rowCount: number,
    private readonly backwards: boolean,
  ) {}

  seek(row: number): void {
    const at = Math.min(row, this.rowCount - 1)
    if (row >= this.rowCount && !this.backwards) {
      this.row = -1
      return
    }
    this.#group = this.groups.numberOf(at)
    this.#settle(at)
  }

  next(): void {
    this.#settle(this.row + (this.backwards ? -1 : 1))
  }

  /** The first transaction at or behind `row`, which lies in this group or in the next one. */
  #settle(row: number): void {
    const { groups, backwards } = this
    for (;;) {
      if (this.#group < 0 || this.#group >= groups.count) {
        this.row = -1
        return
      }
      const { first, end, place } = groups.group(this.#group)
      const at = backwards ? Math.min(row, end - 1) : Math.max(row, first)
      if (place % 2 === 0 && at >= first && at < end) {
        this.row = at
        return
      }
      this.#group += backwards ? -1 : 1
    }
  }
}

/** Rows that are in any of the cursors, each once. */
export class AnyCursor implements RowCursor {
  row = -1

  constructor(
    private readonly cursors: readonly RowCursor[],
    private readonly backwards: boolean,
  ) {}

  seek(row: number): void {
    for (const cursor of this.cursors) {
      const isBehind =
        cursor.row >= 0 && (this.backwards ? cursor.row <= row : cursor.row >= row) && this.row >= 0
      if (!isBehind) cursor.seek(row)
    }
    this.#settle()
  }

  next(): void {
    const { row } = this
    for (const cursor of this.cursors) if (cursor.row === row) cursor.next()
    this.#settle()
  }

  #settle(): void {
    let nearest = -1
    for (const { row } of this.cursors) {
      if (row >= 0 && (nearest < 0 || (this.backwards ? row > nearest : row < nearest))) nearest = row
    }
    this.row = nearest
  }
}

/** Rows that are in all of the cursors (at least one). Each leaps to the place of another one: the shortest list decides. */
export class AllOfCursor implements RowCursor {
  row = -1

  constructor(
    private readonly cursors: readonly RowCursor[],
    private readonly backwards: boolean,
  ) {}

  seek(row: number): void {
    const [lead] = this.cursors
    lead?.seek(row)
    this.#agree()
  }

  next(): void {
    const [lead] = this.cursors
    lead?.next()
    this.#agree()
  }

  #agree(): void {
    const { cursors, backwards } = this
    let target = cursors[0]?.row ?? -1
    for (let agreed = 1, at = 0; target >= 0 && agreed < cursors.length; ) {
      at = (at + 1) % cursors.length
      const cursor = cursors[at] as RowCursor
      const isThere = cursor.row >= 0 && (backwards ? cursor.row <= target : cursor.row >= target)
      if (!isThere) cursor.seek(target)
      agreed = cursor.row === target ? agreed + 1 : 1
      target = cursor.row
    }
    this.row = target
  }
}
