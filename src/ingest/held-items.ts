import { headerMemory } from '../format/header-memory.js'
import { isBundle } from '../source/roots/learned.js'
import type { FoundItem } from './chain-rows.js'

/** What was learned of items that are bundles: where the payload of each begins in the root, and which one it lies in. */
export type SignedBundles = ReadonlyMap<number, number>

/** Where the payload of a root begins. */
const rootStart = 0

/** Signed bundles in one root whose places are noted: some 100 bytes each. */
const signedMax = 262_144

/** Bytes of memory that held items may take in all bundles together that a thread has open. */
export class HeldBytes {
  #bytes = 0

  /** `places`: bundles that are open at once, about. */
  constructor(
    private readonly bytesMax: number,
    private readonly places: number,
  ) {}

  get bytes(): number {
    return this.#bytes
  }

  add(bytes: number): void {
    this.#bytes += bytes
  }

  /**
   * Whether a bundle that holds so many bytes gives up: all hold too much together, and it has more than its share. So large
   * bundles of one do not cause small ones of others to be read twice, and all hold at most twice `bytesMax`.
   */
  isOver(own: number): boolean {
    return this.#bytes > this.bytesMax && own > this.bytesMax / this.places
  }
}

/**
 * Holds nested items back until the item around them is verified: only the payload of an item that its owner signed
 * is a bundle. The payload of an item with a false signature must not yield items.
 *
 * A bundle with more inside than may wait is read twice: the first time only the verdicts are kept. What may wait is counted in
 * bytes of memory, because the makers of items choose how long their headers are.
 */
export class HeldItems {
  /** Items by the start of the payload around them. */
  readonly #groups = new Map<number, FoundItem[]>()
  readonly #signed = new Map<number, number>()
  /** Bytes of items in groups, and of those that were returned and are not indexed yet. */
  #waiting = 0
  #leaving = 0
  #isOver = false

  /** `known`: the verdicts of an earlier reading of the same bundle; nothing waits then. */
  constructor(
    private readonly room: HeldBytes,
    private readonly known?: SignedBundles,
    private readonly bundlesMax = signedMax,
  ) {}

  /** Verdicts for a second reading; undefined where one is enough. */
  get again(): SignedBundles | undefined {
    return this.#isOver ? this.#signed : undefined
  }

  /** It has more signed bundles inside than are noted: a second reading would not know all of them. */
  get isForgetful(): boolean {
    return this.#signed.size >= this.bundlesMax
  }

  /**
   * Takes an item with its verdict, in the order of the bundle (inner ones first). Returns the items that can be
   * indexed now: they count until `left`.
   */
  take(item: FoundItem, isSigned: boolean, isWanted: boolean): readonly FoundItem[] {
    const { header, place } = item
    const around = place.rootItemOffset - place.parentItemOffset
    const inside = place.rootItemOffset + header.headerSize
    const own = isWanted && isSigned ? [item] : []
    if (this.known !== undefined) return this.#leave(this.#isInside(around, this.known) ? own : [])
    const held = this.#groups.get(inside) ?? []
    this.#groups.delete(inside)
    if (isSigned && isBundle(header.tags) && !this.isForgetful) this.#signed.set(inside, around)
    const ready = isSigned ? held.concat(own) : []
    if (around === rootStart) {
      this.#wait(-bytesOf(held))
      return this.#leave(ready)
    }
    if (this.#isOver) return []
    this.#wait(isSigned ? bytesOf(own) : -bytesOf(held))
    if (this.room.isOver(this.#waiting + this.#leaving)) this.#giveUp()
    if (this.#isOver || ready.length === 0) return []
    const group = this.#groups.get(around)
    if (group === undefined) this.#groups.set(around, ready)
    else for (const one of ready) group.push(one)
    return []
  }

  /** Items that `take` returned are indexed, and held no more. */
  left(items: readonly FoundItem[]): void {
    const bytes = bytesOf(items)
    this.#leaving -= bytes
    this.room.add(-bytes)
  }

  /** Nothing of this bundle is held any more. */
  close(): void {
    this.#groups.clear()
    this.#wait(-this.#waiting)
    this.room.add(-this.#leaving)
    this.#leaving = 0
  }

  #wait(bytes: number): void {
    this.#waiting += bytes
    this.room.add(bytes)
  }

  #leave(items: readonly FoundItem[]): readonly FoundItem[] {
    const bytes = bytesOf(items)
    this.#leaving += bytes
    this.room.add(bytes)
    return items
  }

  #giveUp(): void {
    this.#isOver = true
    this.#groups.clear()
    this.#wait(-this.#waiting)
  }

  /** Whether every item around this place is signed. */
  #isInside(around: number, known: SignedBundles): boolean {
    for (let at: number | undefined = around; at !== rootStart; at = known.get(at)) {
      if (at === undefined) return false
    }
    return true
  }
}

function bytesOf(items: readonly FoundItem[]): number {
  return items.reduce((sum, { header }) => sum + headerMemory(header), 0)
}
