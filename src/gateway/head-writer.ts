import type { Log } from '../actor/log.js'
import type { Signer } from '../attest/answer-signature.js'
import { coverage, linesOfUnchanged } from '../attest/covered.js'
import { blockOf, type Line, safeValue } from '../attest/line.js'
import { metadataLines } from '../attest/metadata-headers.js'
import { digestLines, positionLines, rootLines, trustLines } from '../attest/trust-headers.js'
import { contentTypeIn, type Vocabulary } from '../attest/vocabulary.js'
import type { Attributes } from '../catalog/attributes.js'
import { mediaTypeOf, unknownType } from '../format/media-type.js'
import type { Naming } from '../serving/naming.js'
import { cacheControl, soonStale } from './cache-control.js'
import type { GatewayOptions } from './gateway-rules.js'
import type { Variant } from './plan.js'

/** What is known of the content when its head is written. */
export interface Facts {
  readonly attributes: Attributes
  /** The bytes come from the local store. */
  readonly cached: boolean
  readonly verified: boolean
  readonly trusted: boolean
  readonly stable: boolean
  readonly digest: Uint8Array | undefined
  /** These bytes were hashed, so that the answer may state their digest. */
  readonly hashed: boolean
  /** A manifest's fallback for paths that it does not have: cached for a short time, whatever the content is. */
  readonly fallback: boolean
  /** The request was by a name. */
  readonly naming?: Naming | undefined
}

/** A head without the lines that belong to one request. */
export interface PreparedHead {
  readonly block: string
  /** Lower-case lines that a signature covers; undefined where nothing is signed. */
  readonly covered: readonly Line[] | undefined
}

/** What a signature covers of the request. */
export interface SignedRequest {
  readonly status: number
  readonly method: string
  readonly path: string
}

/** Writes the heads of answers with content. */
export interface HeadWriter {
  /** A signature may be sent again for so long. */
  readonly reuseSeconds: number
  /** Costs about 10 to 50 us: kept for the next request wherever possible. */
  prepare(facts: Facts, variant: Variant, boundary: () => string): PreparedHead
  /** The block with its signature of this second. */
  signed(head: PreparedHead, request: SignedRequest, seconds: number): string
}

export const statusOfVariant: Readonly<Record<Variant, 200 | 206 | 304>> = {
  whole: 200,
  part: 206,
  parts: 206,
  unchanged: 304,
}

const typeMax = 256

/** The content type, made safe for a header line: its text comes from whoever made the item. */
export function typeOf(attributes: Attributes): string {
  const safe = safeValue((attributes.contentType ?? '').slice(0, typeMax))
  return safe === '' ? unknownType : mediaTypeOf(safe)
}

/**
 * Content codings as a list of tokens (RFC 9110 section 8.4); undefined where malformed, because clients could not read the
 * answer.
 */
function encodingOf({ contentEncoding }: Attributes): string | undefined {
  const shape = /^[\w!#$%&'*+.^`|~-]{1,64}(\s*,\s*[\w!#$%&'*+.^`|~-]{1,64}){0,7}$/
  return contentEncoding !== undefined && shape.test(contentEncoding) ? contentEncoding : undefined
}

/** What heads are written with. */
export interface HeadParts {
  readonly vocabulary: Vocabulary
  /** Absent: nothing is signed. */
  readonly signer?: Signer
  readonly log: Log
  readonly options: Pick<GatewayOptions, 'cache' | 'tagHeaders' | 'tagsMax' | 'tagBytesMax'>
}

/** The head writer of one gateway. */
export function createHeadWriter({ vocabulary: words, signer, log, options }: HeadParts): HeadWriter {
  const ladder = cacheControl(options.cache)
  const short = soonStale(options.cache)
  const cover = coverage(words)
  const bounds = { tagsMax: options.tagsMax, bytesMax: options.tagBytesMax }

  const cachingOf = (facts: Facts, contentType: string): string => {
    if (facts.fallback) return short
    const caching = facts.naming?.caching
    if (typeof caching === 'string') return caching
    const { stable, trusted, attributes } = facts
    const plain = { stable, trusted, sizeBytes: attributes.size, contentType }
    return ladder(caching === undefined ? plain : { ...plain, ...caching })
  }
  const linesOf = (facts: Facts, variant: Variant, boundary: () => string): Line[] => {
    const { attributes, cached, digest, naming } = facts
    const contentType = typeOf(attributes)
    const lines: Line[] = [
      ['Accept-Ranges', 'bytes'],
      ['Cache-Control', cachingOf(facts, contentType)],
      ['X-Cache', cached ? 'HIT' : 'MISS'],
    ]
    if (variant === 'parts') lines.push(['Content-Type', `multipart/byteranges; boundary=${boundary()}`])
    else if (variant !== 'unchanged') lines.push(['Content-Type', contentTypeIn(words, contentType)])
    const encoding = encodingOf(attributes)
    // A multipart body is not coded as a whole, and a 304 has none.
    if (encoding !== undefined && (variant === 'whole' || variant === 'part')) {
      lines.push(['Content-Encoding', encoding])
    }
    if (naming !== undefined) lines.push(...naming.lines)
    const { stable, verified, trusted } = facts
    lines.push(...trustLines({ id: attributes.id, stable, verified, trusted }, words))
    if (digest !== undefined) {
      const field = variant === 'whole' ? 'Content-Digest' : 'Repr-Digest'
      lines.push(...digestLines(digest, facts.hashed ? field : undefined, words, naming?.resolvedId))
    }
    if (attributes.place !== undefined) lines.push(...positionLines(attributes.place, words))
    else if (attributes.isTransaction) lines.push(...rootLines(attributes.id, words))
    if (options.tagHeaders && attributes.header !== undefined) {
      lines.push(...metadataLines(attributes.header, bounds, words))
    }
    return lines
  }

  return {
    reuseSeconds: signer?.reuseSeconds ?? 0,
    prepare(facts, variant, boundary) {
      const lines = linesOf(facts, variant, boundary)
      const covered = cover(lines)
      if (variant === 'unchanged')
        return { block: blockOf(linesOfUnchanged(lines, covered)), covered: undefined }
      const isSigned = covered.worthSigning && signer !== undefined
      return { block: blockOf(lines), covered: isSigned ? covered.lines : undefined }
    },
    ...signingWith(signer, log),
  }
}

/** How heads are signed. */
function signingWith(signer: Signer | undefined, log: Log): Pick<HeadWriter, 'signed'> {
  return {
    signed({ block, covered }, request, seconds) {
      if (covered === undefined || signer === undefined) return block
      try {
        const { status, method, path } = request
        return `${block}\r\n${signer.fresh({ status, covered, method, path }, seconds)}`
      } catch (error) {
        log.error({ err: error }, 'an answer could not be signed')
        return block
      }
    },
  }
}
