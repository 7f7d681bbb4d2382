import type { AcceptedItem } from '../records/uploads.js'

export interface ChoiceRules {
  /** Items of a bundle, and bytes; a larger item rides alone. */
  readonly itemsMax: number
  readonly bytesMax: number
}

/** Items that wait, each line in the order in which it is to be taken. */
export interface Lines {
  readonly paid: Iterable<AcceptedItem>
  readonly free: Iterable<AcceptedItem>
}

export interface Choice {
  /** In the order in which they lie in the log, so that it is read in one stretch. */
  readonly items: readonly AcceptedItem[]
  readonly sizeBytes: number
  /** Others still wait, or no more fit. */
  readonly isFull: boolean
  /** Free items waited, and none had room: the next bundle begins with some. */
  readonly isFreeOwed: boolean
}

/** The part of a bundle's items and bytes that paid items get while free ones wait. */
const paidShare = 0.75

/**
 * Items for the next bundle. Paid ones come first and leave a quarter to free ones; what one line does not need the other one
 * has. `isFreeOwed`: of the choice before. A series of items that each fill a bundle leaves every other bundle to free ones.
 */
export function chooseItems(lines: Lines, rules: ChoiceRules, isFreeOwed: boolean): Choice {
  const [paid, free] = [new Line(lines.paid), new Line(lines.free)]
  const load = new Load(rules)
  if (isFreeOwed) load.take(free, 1 - paidShare)
  load.take(paid, isFreeOwed ? 1 : paidShare)
  load.take(free, 1)
  load.take(paid, 1)
  paid.close()
  free.close()
  const isLeft = paid.head !== undefined || free.head !== undefined
  return {
    items: load.items.sort(inLog),
    sizeBytes: load.sizeBytes,
    isFull: isLeft || load.items.length >= rules.itemsMax,
    isFreeOwed: free.head !== undefined && free.taken === 0,
  }
}

function inLog({ place: one }: AcceptedItem, { place: other }: AcceptedItem): number {
  return one.file - other.file || one.offset - other.offset
}

class Line {
  head: AcceptedItem | undefined
  taken = -1
  readonly #rest: Iterator<AcceptedItem>

  constructor(items: Iterable<AcceptedItem>) {
    this.#rest = items[Symbol.iterator]()
    this.next()
  }

  next(): void {
    const { done, value } = this.#rest.next()
    this.head = done === true ? undefined : value
    this.taken += 1
  }

  /** A cursor of the tables that stays open keeps every page that is replaced: the file would grow with each transaction. */
  close(): void {
    this.#rest.return?.()
  }
}

class Load {
  readonly items: AcceptedItem[] = []
  sizeBytes = 0

  constructor(private readonly rules: ChoiceRules) {}

  /** Takes from a line until this share of a bundle is full. The first item always fits. */
  take(line: Line, share: number): void {
    const { itemsMax, bytesMax } = this.rules
    for (let item = line.head; item !== undefined; item = line.head) {
      const isLarge = this.items.length > 0 && this.sizeBytes + item.place.sizeBytes > share * bytesMax
      if (isLarge || this.items.length >= Math.ceil(share * itemsMax)) return
      this.items.push(item)
      this.sizeBytes += item.place.sizeBytes
      line.next()
    }
  }
}
