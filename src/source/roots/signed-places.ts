import { BoundedMap } from '../../actor/bounded-map.js'
import { systemClock } from '../../actor/clock.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import type { RootBytes } from './root-bytes.js'

/** Verdicts that are kept: some 300 bytes each. */
const keptMax = 10_000
/** False sizes of one item that are tried in `falseMs`: whoever names a place with a wrong size has all behind it hashed. */
const [falseMax, falseMs] = [8, 600_000]

/** Resolves when the next piece may be hashed. */
type Turn = () => Promise<Refusal | undefined>

/** An item as the directory of a bundle lists it: the id of its header is right, nothing else was checked. */
export interface ListedItem {
  readonly header: ItemHeader
  /** Where the item begins in the root's data. */
  readonly start: number
  readonly itemSize: number
}

/**
 * Whether listed items are what their owners signed. Anybody can post a bundle that lists a stranger's item and holds its header
 * with other bytes behind it, so the id of the header proves nothing about the payload. The payload is read once as a whole and
 * checked against the signature; the verdict is kept, because proven bytes of a root never change.
 */
export class SignedPlaces {
  readonly #verdicts = new BoundedMap<string, boolean>(keptMax)
  readonly #underway = new Map<string, Promise<unknown>>()
  /** When sizes of an item at a place proved false. */
  readonly #false = new BoundedMap<string, readonly number[]>(keptMax)

  /** A refusal where the item was read before, and is not its owner's. */
  refusalOf(root: RootBytes, item: ListedItem): Refusal | undefined {
    const isFalse = this.#verdicts.get(keyOf(root, item)) === false || this.#isOftenFalse(root, item)
    return isFalse ? notSigned(item.header.id) : undefined
  }

  /** Remembers what a reader of all of the item found. Bytes that are not proven may be others the next time. */
  note(root: RootBytes, item: ListedItem, isSigned: boolean): void {
    if (root.proven) this.#verdicts.set(keyOf(root, item), isSigned)
    const place = placeOf(root, item)
    if (isSigned) this.#false.delete(place)
    else this.#false.set(place, [...(this.#false.get(place) ?? []), systemClock.monotonic()].slice(-falseMax))
  }

  #isOftenFalse(root: RootBytes, item: ListedItem): boolean {
    const times = this.#false.get(placeOf(root, item))
    return times?.length === falseMax && systemClock.monotonic() - (times[0] ?? 0) < falseMs
  }

  /** `forged`: the owner signed something else. Other refusals: the bytes could not be read. */
  async check(root: RootBytes, item: ListedItem, turn: Turn, signal: AbortSignal): Promise<true | Refusal> {
    const { id } = item.header
    const key = keyOf(root, item)
    // One reads it, however many ask. Where that one left, the next one begins anew.
    for (;;) {
      const known = this.#verdicts.get(key)
      if (known !== undefined) return known || notSigned(id)
      if (this.#isOftenFalse(root, item)) return notSigned(id)
      const running = this.#underway.get(key)
      if (running === undefined) break
      await either(running, signal)
      if (signal.aborted) return refuse('late', 'client', 'the reader left')
    }
    const reading = this.#read(root, item, turn, signal)
    this.#underway.set(key, reading)
    try {
      const isSigned = await reading
      if (isRefusal(isSigned)) return isSigned
      this.note(root, item, isSigned)
      return isSigned || notSigned(id)
    } finally {
      this.#underway.delete(key)
    }
  }

  async #read(
    root: RootBytes,
    { header, start, itemSize }: ListedItem,
    turn: Turn,
    signal: AbortSignal,
  ): Promise<boolean | Refusal> {
    const verifier = new ItemVerifier(header)
    const [from, to] = [start + header.headerSize, start + itemSize]
    if (from < to) {
      for await (const piece of root.stream(from, to, signal)) {
        const refusal = isRefusal(piece) ? piece : await turn()
        if (isRefusal(piece) || refusal !== undefined) return refusal ?? false
        verifier.update(piece)
      }
    }
    return verifier.finish() === true
  }
}

function placeOf({ id }: RootBytes, { header, start }: ListedItem): string {
  return `${id} ${start} ${header.id}`
}

function keyOf(root: RootBytes, { header, start, itemSize }: ListedItem): string {
  return [root.id, root.sizeBytes, start, itemSize, header.id].join(' ')
}

function notSigned(id: string): Refusal {
  return refuse('forged', 'upstream', `the owner of ${id} did not sign what lies there`)
}

/** Resolves when `work` has ended, or the signal has fired. */
async function either(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  let leave: (() => void) | undefined
  const left = new Promise<void>((resolve) => {
    leave = resolve
    signal.addEventListener('abort', leave, { once: true })
  })
  const ended = work.then(
    () => undefined,
    () => undefined,
  )
  await Promise.race([ended, left])
  if (leave !== undefined) signal.removeEventListener('abort', leave)
}
