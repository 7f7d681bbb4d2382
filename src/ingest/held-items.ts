import { isBundle } from '../source/roots/learned.js'
import type { FoundItem } from './chain-rows.js'

/** What was learned of items that are bundles: where the payload of each begins in the root, and which one it lies in. */
export type SignedBundles = ReadonlyMap<number, number>

/** Where the payload of a root begins. */
const rootStart = 0

/**
 * Holds nested items back until the item around them is verified: only the payload of an item that its owner signed
 * is a bundle. The payload of an item with a false signature must not yield items.
 *
 * A bundle with more inside than may wait is read twice: the first time only the verdicts are kept.
 */
export class HeldItems {
  /** Items by the start of the payload around them. */
  readonly #groups = new Map<number, FoundItem[]>()
  readonly #signed = new Map<number, number>()
  #held = 0
  #isOver = false

  /** `known`: the verdicts of an earlier reading of the same bundle; nothing waits then. */
  constructor(
    private readonly heldMax: number,
    private readonly known?: SignedBundles,
  ) {}

  /** Verdicts for a second reading; undefined where one is enough. */
  get again(): SignedBundles | undefined {
    return this.#isOver ? this.#signed : undefined
  }

  /**
   * Takes an item with its verdict, in the order of the bundle (inner ones first). Returns the items that can be
   * indexed now.
   */
  take(item: FoundItem, isSigned: boolean, isWanted: boolean): readonly FoundItem[] {
    const { header, place } = item
    const around = place.rootItemOffset - place.parentItemOffset
    const inside = place.rootItemOffset + header.headerSize
    const own = isWanted && isSigned ? [item] : []
    if (this.known !== undefined) return this.#isInside(around, this.known) ? own : []
    const held = this.#groups.get(inside) ?? []
    this.#groups.delete(inside)
    if (isSigned && isBundle(header.tags)) this.#signed.set(inside, around)
    const ready = isSigned ? held.concat(own) : []
    if (around === rootStart) {
      this.#held -= held.length
      return ready
    }
    this.#held += ready.length - held.length
    if (this.#held > this.heldMax) this.#giveUp()
    if (this.#isOver || ready.length === 0) return []
    const group = this.#groups.get(around)
    if (group === undefined) this.#groups.set(around, ready)
    else for (const one of ready) group.push(one)
    return []
  }

  #giveUp(): void {
    this.#isOver = true
    this.#groups.clear()
    this.#held = 0
  }

  /** Whether every item around this place is signed. */
  #isInside(around: number, known: SignedBundles): boolean {
    for (let at: number | undefined = around; at !== rootStart; at = known.get(at)) {
      if (at === undefined) return false
    }
    return true
  }
}
