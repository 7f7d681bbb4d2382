import type { ItemPlace } from '../catalog/attributes.js'
import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import type { Line } from './line.js'
import type { Vocabulary } from './vocabulary.js'

/**
 * What this gateway states about content. Each flag is always sent, as true or false: an absent flag would be no
 * statement.
 */
export interface Trust {
  readonly id: Id
  /** Proven against the chain, and the bytes come from local cache. */
  readonly verified: boolean
  /** Deeper in the chain than any accepted fork. */
  readonly stable: boolean
  /** From a source that the operator trusts. */
  readonly trusted: boolean
}

/** Names of the lines that each answer with content has. */
interface TrustNames {
  readonly id: string
  readonly stable: string
  readonly verified: string
  readonly trusted: string
  readonly digest: string
}

const trustNames = new WeakMap<Vocabulary, TrustNames>()

/** Made once: the same string is found in a table without being hashed again. */
function trustNamesIn(words: Vocabulary): TrustNames {
  const known = trustNames.get(words)
  if (known !== undefined) return known
  const { gateway } = words
  const names = {
    id: `${gateway}Data-Id`,
    stable: `${gateway}Stable`,
    verified: `${gateway}Verified`,
    trusted: `${gateway}Trusted`,
    digest: `${gateway}Digest`,
  }
  trustNames.set(words, names)
  return names
}

/** Whose bytes these are, and how sure that is. */
export function trustLines(trust: Trust, words: Vocabulary): Line[] {
  const names = trustNamesIn(words)
  return [
    [names.id, trust.id],
    [names.stable, String(trust.stable)],
    [names.verified, String(trust.verified)],
    [names.trusted, String(trust.trusted)],
  ]
}

/**
 * The strong entity tag of content with this SHA-256 (RFC 9110 section 8.8.3): the hash itself; for content served by a name,
 * the hash, a dot, and the id that the name means.
 */
export function entityTag(digest: Uint8Array, resolvedId?: Id): string {
  return tagOf(encodeBase64url(digest), resolvedId)
}

function tagOf(digestText: string, resolvedId?: Id): string {
  return resolvedId === undefined ? `"${digestText}"` : `"${digestText}.${resolvedId}"`
}

/**
 * Digest of the content, and its entity tag. `field` says what is hashed (RFC 9530): `Content-Digest` where the body sent is
 * the whole content, `Repr-Digest` where it is a part or nothing; undefined where the bytes at hand were not hashed yet.
 */
export function digestLines(
  digest: Uint8Array,
  field: 'Content-Digest' | 'Repr-Digest' | undefined,
  words: Vocabulary,
  resolvedId?: Id,
): Line[] {
  const text = encodeBase64url(digest)
  const lines: Line[] = [[trustNamesIn(words).digest, text]]
  if (field !== undefined) lines.push([field, `sha-256=:${Buffer.from(digest).toString('base64')}:`])
  lines.push(['ETag', tagOf(text, resolvedId)])
  return lines
}

/** A transaction is its own root: a client that reads it by chunks begins at its first byte. */
export function rootLines(id: Id, words: Vocabulary): Line[] {
  return [
    [`${words.gateway}Root-Transaction-Id`, id],
    [`${words.gateway}Root-Data-Item-Offset`, '0'],
    [`${words.gateway}Root-Data-Offset`, '0'],
  ]
}

/** Where a data item lies in its bundles; the same facts also under the names that older clients read. */
export function positionLines(place: ItemPlace, words: Vocabulary): Line[] {
  const { rootItemOffset, parentItemOffset, headerSize, itemSize } = place
  const dataOffset = words.dataOffsetFrom === 'item' ? headerSize : parentItemOffset + headerSize
  const facts: [string, string | number][] = [
    ['Root-Transaction-Id', place.rootId],
    ['Root-Data-Item-Offset', rootItemOffset],
    ['Root-Data-Offset', rootItemOffset + headerSize],
    ['Root-Item-Offset', rootItemOffset],
    ['Root-Item-Size', itemSize],
  ]
  if (place.path.length > 0) facts.push(['Root-Path', place.path.join(',')])
  facts.push(
    ['Data-Item-Root-Parent-Offset', rootItemOffset - parentItemOffset],
    ['Data-Item-Offset', parentItemOffset],
    ['Data-Item-Size', itemSize],
    ['Data-Item-Data-Offset', dataOffset],
  )
  return facts.map(([name, value]) => [`${words.gateway}${name}`, String(value)])
}
