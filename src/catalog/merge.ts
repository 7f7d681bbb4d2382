import type { Attributes, ItemPlace } from './attributes.js'

function same(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0
}

/** Copies only the fields that are there: an absent field means unknown and must not hide a known one. */
function present<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>
}

/** The second of two places of an item, unless only the first holds what the owner signed. */
export function betterPlace(
  known: ItemPlace | undefined,
  learned: ItemPlace | undefined,
): ItemPlace | undefined {
  return learned === undefined || (known?.isSigned === true && learned.isSigned !== true) ? known : learned
}

/**
 * What is known after `learned` was added to `known`. Pure. The rules:
 *
 * - present fields replace, absent ones stay;
 * - proven bytes win: a digest proven before is only replaced by another proven one, and size goes with the digest;
 * - `verified` belongs to a digest: it stays while the digest stays, never falls back to false, and means nothing without one;
 * - `trusted` belongs to the bytes too: another digest brings its own;
 * - types read from the item's own header win over those that a server stated;
 * - a place that holds what the owner signed is only replaced by another such place.
 */
export function merge(known: Attributes | undefined, learned: Attributes): Attributes {
  if (known === undefined)
    return learned.verified && learned.digest === undefined ? { ...learned, verified: false } : learned
  const replaces = learned.digest !== undefined && !same(known.digest, learned.digest)
  if (replaces && known.verified && !learned.verified) {
    const { digest: _digest, size: _size, trusted: _trusted, contentType: _type, ...rest } = learned
    return merge(known, { ...rest, size: known.size, trusted: known.trusted })
  }
  const digest = learned.digest ?? known.digest
  const fromHeader = known.header !== undefined && learned.header === undefined
  const { contentType, contentEncoding, place: _place, ...others } = learned
  const place = betterPlace(known.place, learned.place)
  return {
    ...known,
    ...present(others),
    ...(fromHeader ? {} : present({ contentType, contentEncoding })),
    ...(place === undefined ? {} : { place }),
    size: known.verified && !learned.verified ? known.size : learned.size,
    verified: digest !== undefined && (learned.verified || (known.verified && !replaces)),
    trusted: replaces ? learned.trusted : known.trusted || learned.trusted,
  }
}

/**
 * What is still believed after the digest proved wrong. Without a header or place everything came from whoever sent the
 * wrong bytes, so nothing is believed: undefined.
 */
export function distrusted(known: Attributes): Attributes | undefined {
  if (known.header === undefined && known.place === undefined) return undefined
  const { digest: _digest, ...rest } = known
  return { ...rest, verified: false, trusted: false }
}

/** True where nothing is left to be proved about what is known, so that the verifier need not look again. */
export function isFullyProven(known: Attributes): boolean {
  return known.digest === undefined || (known.verified && known.height !== undefined)
}
