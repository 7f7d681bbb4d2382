import { type AnySignal, signalOf } from '../../actor/lazy-signal.js'
import type { Requester } from '../../actor/requester.js'
import type { Attributes, ItemPlace } from '../../catalog/attributes.js'
import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import { unknownEverywhere } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'
import { windowIn } from '../window-in.js'
import { Directories } from './directories.js'
import { type Guide, isFailure, Locating, type LocationLimits, readItemHeader } from './item-location.js'
import { learnedOfItem } from './learned.js'
import type { RootBytes } from './root-bytes.js'
import { SignedPlaces } from './signed-places.js'

export type OpenRoot = (id: Id, requester: Requester) => Promise<RootBytes | Refusal>

/** An item in a root whose bytes are at hand. */
interface Item {
  readonly header: ItemHeader
  readonly start: number
  readonly itemSize: number
  readonly place: ItemPlace
}

/** The root that an item is looked for in; undefined where there is none but the item itself. */
function rootOf({ id, attributes, hints }: Wanted): Id | undefined {
  const known = attributes?.place
  const rootId = (known?.isSigned === true ? undefined : hints.rootId) ?? known?.rootId
  return rootId === id ? undefined : rootId
}

/**
 * Data items out of the root that holds them: finds the item, sees that its signature hashes to the id, and gives its payload. A
 * whole payload is verified against the item's signature before its end is believed; before a window is given, all of the payload
 * was verified at this place.
 */
export class Items implements Source {
  readonly #signed = new SignedPlaces()

  constructor(
    readonly name: string,
    private readonly openRoot: OpenRoot,
    private readonly limits: LocationLimits,
    private readonly directories = new Directories(),
  ) {}

  /** An item without a root that is known or named is nowhere to be looked for. */
  mayHave(wanted: Wanted): boolean {
    return rootOf(wanted) !== undefined
  }

  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const signal = signalOf(ending)
    if (wanted.avoid.has(this.name)) return unknownEverywhere()
    const rootId = rootOf(wanted)
    if (rootId === undefined) return unknownEverywhere()
    const root = await this.openRoot(rootId, { client: wanted.client, signal })
    if (isRefusal(root)) return root
    const item = await this.#find(root, wanted, signal)
    const found = isRefusal(item) ? item : await this.#found(root, item, wanted, signal)
    if (!isRefusal(found)) return found
    await root.close()
    return found
  }

  async #find(root: RootBytes, wanted: Wanted, signal: AbortSignal): Promise<Item | Refusal> {
    const { id, hints, attributes } = wanted
    const place = attributes?.place
    if (place !== undefined && place.rootId === root.id) {
      const start = place.rootItemOffset
      const header = await readItemHeader(root, id, start, place.itemSize, signal)
      if (!isRefusal(header)) return { header, start, itemSize: place.itemSize, place }
      if (isFailure(header)) return header
    }
    const guide: Guide = { path: hints.path, itemOffset: hints.itemOffset }
    const { limits, directories } = this
    const locating = new Locating(root, id, limits, signal, directories, wanted.client)
    const located = await locating.locate(guide)
    if (!isRefusal(located)) {
      const { header, place } = located
      return { header, start: place.rootItemOffset, itemSize: place.itemSize, place }
    }
    const failure = isFailure(located) ? located : unknownEverywhere()
    const { itemOffset, itemSize } = hints
    if (failure.refused !== 'unknown' || itemOffset === undefined || itemSize === undefined) return failure
    if (itemOffset + itemSize > root.sizeBytes) return failure
    // No bundle lists it: it may still be where the hint says, in data of another kind.
    const header = await readItemHeader(root, id, itemOffset, itemSize, signal)
    if (isRefusal(header)) return isFailure(header) ? header : failure
    const path = await locating.around(itemOffset, itemOffset + itemSize)
    if (isRefusal(path)) return isFailure(path) ? path : failure
    return {
      header,
      start: itemOffset,
      itemSize,
      place: placeIn(root.id, path, itemOffset, itemSize, header),
    }
  }

  async #found(
    root: RootBytes,
    item: Item,
    { window: requested, client }: Wanted,
    signal: AbortSignal,
  ): Promise<Found | Refusal> {
    const turn = (): Promise<Refusal | undefined> => this.directories.turn(client)
    const { header, start, itemSize } = item
    const isUnsigned = item.place.isSigned !== true
    const place: ItemPlace = { ...within(root, item.place), isSigned: true }
    const sizeBytes = itemSize - header.headerSize
    const window = requested && windowIn(requested, sizeBytes)
    if (isRefusal(window)) return window
    if (isUnsigned) {
      const isSigned =
        window === undefined
          ? (this.#signed.refusalOf(root, item) ?? true)
          : await this.#signed.check(root, item, turn, signal)
      if (isSigned !== true) return isSigned
    }
    const judged = (isSigned: boolean): void => this.#signed.note(root, item, isSigned)
    const whole = window === undefined ? { verifier: new ItemVerifier(header), judged, turn } : undefined
    const from = start + header.headerSize + (window?.start ?? 0)
    const to = start + header.headerSize + (window === undefined ? sizeBytes : window.end + 1)
    const learned = learnedOfItem(header)
    return {
      name: this.name,
      origin: this.name,
      sizeBytes,
      body: payload(root, from, to, whole, signal),
      trusted: root.trusted,
      proven: root.proven,
      ...(isUnsigned && window === undefined ? { isJudgedAtEnd: isUnsigned } : {}),
      learned: root.proven ? { ...learned, place, ...heightOf(root) } : learned,
      hints: {},
      around: [root.id, place.rootId, ...place.path],
    }
  }
}

/**
 * The place of an item that no bundle's header lists: its offset counts from the root alone. `path`: all that it lies in, so that
 * a block of any of them holds for these bytes.
 */
function placeIn(
  rootId: Id,
  path: readonly Id[],
  offset: number,
  itemSize: number,
  { headerSize }: ItemHeader,
): ItemPlace {
  const offsets = { rootItemOffset: offset, parentItemOffset: offset }
  return { rootId, parentId: rootId, path, ...offsets, itemSize, headerSize }
}

/** A place in the data of an item, as the place in the root that the item lies in itself. */
function within({ outer }: RootBytes, place: ItemPlace): ItemPlace {
  if (outer === undefined) return place
  const { rootId, path, rootItemOffset, headerSize } = outer
  const start = rootItemOffset + headerSize
  return {
    ...place,
    rootId,
    path: [...path, ...place.path],
    rootItemOffset: start + place.rootItemOffset,
  }
}

/** An item is in the block that its root is in. */
function heightOf({ height }: RootBytes): Pick<Attributes, 'height'> {
  return height === undefined ? {} : { height }
}

/** Who takes all of a payload, and hears at its end whether the owner signed it. */
interface WholeJudge {
  readonly verifier: ItemVerifier
  judged(isSigned: boolean): void
  /** Resolves when the next piece may be judged. */
  turn(): Promise<Refusal | undefined>
}

/**
 * The payload's bytes; with a judge (it is all of the payload, and kept) a refusal at the end unless the owner signed them.
 * Closes the root.
 */
async function* payload(
  root: RootBytes,
  start: number,
  end: number,
  whole: WholeJudge | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  try {
    const near = start === end ? undefined : root.near?.(start, end)
    let isFirst = true
    for await (const piece of near === undefined
      ? root.stream(start, end, signal, whole !== undefined)
      : [near]) {
      const refusal = isRefusal(piece) ? piece : isFirst ? undefined : await whole?.turn()
      if (isRefusal(piece) || refusal !== undefined) {
        yield refusal ?? piece
        return undefined
      }
      isFirst = false
      whole?.verifier.update(piece)
      yield piece
    }
    const held = whole?.verifier.finish() ?? true
    whole?.judged(held === true)
    if (held !== true) yield held
    return undefined
  } finally {
    await root.close()
  }
}
