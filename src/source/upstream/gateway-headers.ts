import { decodeBase64url, encodeBase64url } from '../../format/base64url.js'
import { type Id, parseId } from '../../format/id.js'
import type { Writable } from '../../format/writable.js'
import type { Learned, Wanted } from '../source.js'
import type { Hints, Provenance } from '../source-messages.js'

/** Header lines as an HTTP client gives them: lower-case names; repeated lines as an array. */
export type HeaderLines = Readonly<Record<string, string | string[] | undefined>>

/** What this gateway calls itself in the trail of a request. */
export interface OwnName {
  /** Lower-case host name; absent where the operator gave none. */
  readonly host?: string
  readonly release: string
}

/** The words of gateways on the network, and the neutral ones. */
const spellings = ['x-ar-io-', 'x-gateway-']

/** Words of an answer that are read here, without their beginning. */
const words = [
  'digest',
  'hops',
  'verified',
  'trusted',
  'root-transaction-id',
  'root-path',
  'root-item-offset',
  'root-data-item-offset',
  'root-item-size',
  'data-item-size',
] as const

type Word = (typeof words)[number]

/** The names of their lines. */
const spelledWords = Object.fromEntries(
  words.map((word) => [word, spellings.map((spelling) => spelling + word)]),
) as unknown as Readonly<Record<Word, readonly string[]>>

/** Names of all header lines of an answer that are read. */
export const wantedLines: readonly string[] = [
  'content-type',
  'content-encoding',
  'content-length',
  'content-range',
  'retry-after',
  ...Object.values(spelledWords).flat(),
]

/** The value of header `x-ar-io-<name>` or `x-gateway-<name>`. */
function word(lines: HeaderLines, name: Word): string | undefined {
  for (const spelled of spelledWords[name]) {
    const value = lines[spelled]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

function count(text: string | undefined): number | undefined {
  if (text === undefined || !/^[0-9]{1,16}$/.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : undefined
}

/**
 * The header lines of a request to another gateway against loops: one hop more, the name of the first gateway, and the own name
 * at the end of the via list. The gateway that would close a loop detects it. In the form that gateways of the network parse.
 */
export function trailHeaders(provenance: Provenance, own: OwnName): Record<string, string> {
  const origin = provenance.origin ?? own.host
  const release = provenance.originRelease ?? (provenance.origin === undefined ? own.release : undefined)
  const via = [...provenance.via, ...(own.host === undefined ? [] : [own.host])]
  return {
    'X-AR-IO-Hops': String(provenance.hops + 1),
    ...(origin === undefined ? {} : { 'X-AR-IO-Origin': origin }),
    ...(release === undefined ? {} : { 'X-AR-IO-Origin-Node-Release': release }),
    ...(via.length === 0 ? {} : { 'X-AR-IO-Via': via.join(',') }),
  }
}

/** True: whatever the id is, neither of the trail nor of hints is there a line that would tell one such question from another. */
export function isUsual({ provenance, hints, attributes, window }: Wanted): boolean {
  const { hops, origin, originRelease, via } = provenance
  const hasTrail = hops > 0 || origin !== undefined || originRelease !== undefined || via.length > 0
  if (hasTrail || window !== undefined || attributes?.place !== undefined) return false
  const { rootId, path, itemOffset } = hints
  const isGuided = rootId !== undefined || path !== undefined || itemOffset !== undefined
  return !isGuided && attributes?.verified !== true
}

/** Where to look, passed on, and the digest that is already proven. */
export function hintHeaders({ hints, attributes }: Wanted): Record<string, string> {
  const lines: Record<string, string> = {}
  const place = attributes?.place
  const root = place?.rootId ?? hints.rootId
  const offset = place?.rootItemOffset ?? hints.itemOffset
  const size = place?.itemSize ?? hints.itemSize
  const path = place?.path ?? hints.path
  if (root !== undefined) lines['X-AR-IO-Root-Transaction-Id'] = root
  if (path !== undefined && path.length > 0) lines['X-AR-IO-Root-Path'] = path.join(',')
  if (offset !== undefined && size !== undefined) {
    lines['X-AR-IO-Root-Item-Offset'] = String(offset)
    lines['X-AR-IO-Root-Item-Size'] = String(size)
  }
  if (attributes?.verified === true && attributes.digest !== undefined) {
    lines['X-AR-IO-Expected-Digest'] = encodeBase64url(attributes.digest)
  }
  return lines
}

/** What an answer says beside its bytes. */
export interface AnswerHeaders {
  readonly learned: Learned
  readonly hints: Hints
  readonly declaredDigest?: Uint8Array
  readonly hops?: number
  /** It says that it verified or trusts what it sends. */
  readonly vouched: boolean
}

/** A printable header value of sensible length: it will be sent on to clients. */
function plain(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[\x20-\x7e]{1,255}$/.test(value) ? value : undefined
}

/** Reads an answer's headers under both spellings. Whatever is malformed counts as not sent. */
export function readAnswerHeaders(lines: HeaderLines): AnswerHeaders {
  const contentType = plain(lines['content-type'])
  const contentEncoding = plain(lines['content-encoding'])
  const declared = word(lines, 'digest')
  const digest = declared === undefined ? undefined : decodeBase64url(declared)
  const hops = count(word(lines, 'hops'))
  const learned: Writable<Learned> = {}
  if (contentType !== undefined) learned.contentType = contentType
  if (contentEncoding !== undefined && contentEncoding !== 'identity')
    learned.contentEncoding = contentEncoding
  const vouched = word(lines, 'verified') === 'true' || word(lines, 'trusted') === 'true'
  const headers: Writable<AnswerHeaders> = { learned, hints: hintsOf(lines), vouched }
  if (digest?.length === 32) headers.declaredDigest = digest
  if (hops !== undefined) headers.hops = hops
  return headers
}

/** Where the answer says that the item lies. Offsets of items count from the root's data, under either of their names. */
function hintsOf(lines: HeaderLines): Hints {
  const rootId = parseId(word(lines, 'root-transaction-id') ?? '')
  if (rootId === undefined) return {}
  const itemOffset = count(word(lines, 'root-item-offset') ?? word(lines, 'root-data-item-offset'))
  const itemSize = count(word(lines, 'root-item-size') ?? word(lines, 'data-item-size'))
  const path = word(lines, 'root-path')
    ?.split(',')
    .map((part) => parseId(part.trim()))
  const ids = path?.every((id): id is Id => id !== undefined) === true ? path : undefined
  return {
    rootId,
    ...(ids === undefined ? {} : { path: ids }),
    ...(itemOffset === undefined || itemSize === undefined ? {} : { itemOffset, itemSize }),
  }
}
