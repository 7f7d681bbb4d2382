import { createHash, createPublicKey, sign, verify } from 'node:crypto'
import * as z from 'zod'
import type { SigningKey } from '../attest/keys.js'
import { decodeBase58 } from '../format/base58.js'
import { canonicalJson } from '../format/canonical-json.js'
import { isEntryName } from '../format/entry-name.js'
import { parsedBytes } from '../format/json.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { isIndexName } from './index-names.js'
import { ownDomain, type PublicationDocument, publicationMaxBytes } from './publication.js'

const indexesMax = 64
const bandsMax = 1024
const filesMax = 1024

/** SubjectPublicKeyInfo of an Ed25519 key up to its 32 bytes (RFC 8410 section 4). */
const spkiFrame = Buffer.from('302a300506032b6570032100', 'hex')

const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`))
const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const indexName = z.string().refine(isIndexName)
const entryName = z.string().refine(isEntryName)
const time = z
  .string()
  .max(40)
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/)
  .refine((text) => !Number.isNaN(Date.parse(text)))
const address = z
  .string()
  .max(44)
  .refine((text) => decodeBase58(text)?.length === 32)

function unique<Key extends string>(key: Key): (entries: readonly Record<Key, string>[]) => boolean {
  return (entries) => new Set(entries.map((entry) => entry[key])).size === entries.length
}

const file = z.object({ name: entryName, size: count, sha256: hex(64) })
const torrent = z.object({
  infohashV1: hex(40),
  infohashV2: hex(64).optional(),
  magnet: z.string().max(4096),
  torrentUrl: z.string().max(512),
})
const band = z.object({
  id: entryName,
  files: z.array(file).min(1).max(filesMax).refine(unique('name')),
  heightRange: z.tuple([count, count.nullable()]).optional(),
  records: count.optional(),
  http: z.object({ baseUrl: z.string().max(1024).optional() }).optional(),
  torrent: torrent.optional(),
  arweave: z.object({ manifestTxId: z.string().max(43).optional() }).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
})
const index = z.object({
  name: indexName,
  kind: indexName,
  filter: z.unknown().optional(),
  bands: z.array(band).max(bandsMax).refine(unique('id')),
})
const shape = z.object({
  version: z.literal(1),
  publisher: address,
  sequence: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
  previousManifestSha256: hex(64).nullable(),
  issuedAt: time,
  expiresAt: time,
  indexes: z.array(index).max(indexesMax).refine(unique('name')),
  signature: z.object({ alg: z.literal('ed25519'), keyId: address, sig: z.string().max(128) }),
})

/** A document whose shape is right; its signature is not verified yet. */
export interface ReadPublication {
  readonly document: PublicationDocument
  /** SHA-256 (hex) of the bytes as they came: entity tag, and `previousManifestSha256` of the next one. */
  readonly sha256: string
  /** The signed members, including those that are not known here. */
  readonly signedMembers: object
}

/** What is checked before a document is followed. */
export interface Expected {
  /** Base58 keys that may sign for this publisher: from the settings, or from the registry. */
  readonly keyIds: readonly string[]
  /** Base58 address; undefined: the keys alone identify the publisher. */
  readonly publisher?: string
  /** Domains that are accepted: those of either vocabulary. */
  readonly domains: readonly string[]
  /** The highest sequence seen of this publisher: the same is fine, a lower one is a rollback. */
  readonly sequenceMin: number
}

function no(message: string): Refusal {
  return refuse('malformed', 'upstream', `publication: ${message}`)
}

/** Reads the bytes of a document: size, JSON, shape, names, bounds. Fields that are not known are ignored. */
export function readPublication(bytes: Uint8Array): ReadPublication | Refusal {
  if (bytes.length > publicationMaxBytes) return refuse('too-large', 'upstream', 'publication: over 4 MiB')
  const parsed = parsedBytes(bytes, { values: 300_000 })
  if (parsed === undefined) return no('not JSON, or with too many values')
  const checked = shape.safeParse(parsed)
  if (!checked.success) {
    const [issue] = checked.error.issues
    return no(`${issue?.path.join('.').slice(0, 100)}: ${issue?.message.slice(0, 100)}`)
  }
  if (Date.parse(checked.data.expiresAt) < Date.parse(checked.data.issuedAt)) {
    return no('expires before it was issued')
  }
  const { signature: _signature, ...signedMembers } = parsed as Record<string, unknown>
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { document: checked.data, sha256, signedMembers }
}

/**
 * Reads a document and sees that it may be followed, in this order: shape, key, signature, sequence. `forged`: signed
 * by somebody else, or not at all; `malformed`: a shape that is wrong, or a rollback. An expired document is not
 * refused: see `isExpired`.
 */
export function verifyPublication(bytes: Uint8Array, expected: Expected): ReadPublication | Refusal {
  const read = readPublication(bytes)
  if (isRefusal(read)) return read
  const { document, signedMembers } = read
  const { keyId, sig } = document.signature
  if (!expected.keyIds.includes(keyId))
    return refuse('forged', 'upstream', 'publication: signed by another key')
  if (expected.publisher !== undefined && expected.publisher !== document.publisher) {
    return refuse('forged', 'upstream', 'publication: of another publisher')
  }
  const signed = isSigned(signedMembers, keyId, sig, expected.domains)
  if (isRefusal(signed)) return signed
  if (!signed) {
    return refuse(
      'forged',
      'upstream',
      `publication: the signature is wrong, as ${expected.domains.join(' and as ')}`,
    )
  }
  if (document.sequence < expected.sequenceMin) {
    return no(`sequence ${document.sequence} is below ${expected.sequenceMin}, which was seen before`)
  }
  return read
}

function isSigned(
  members: object,
  keyId: string,
  sig: string,
  domains: readonly string[],
): boolean | Refusal {
  const publicKey = decodeBase58(keyId)
  const signature = Buffer.from(sig, 'base64')
  if (publicKey === undefined || signature.length !== 64 || signature.toString('base64') !== sig) return false
  let text: string
  try {
    text = canonicalJson(members)
  } catch (error) {
    return no((error as RangeError).message)
  }
  const key = createPublicKey({ key: Buffer.concat([spkiFrame, publicKey]), format: 'der', type: 'spki' })
  return domains.some((domain) => verify(null, Buffer.from(`${domain}\n${text}`), key, signature))
}

/** Whether the document has expired: its bands are still valid, but it may not list the newest ones. */
export function isExpired(document: PublicationDocument, nowMs: number): boolean {
  return Date.parse(document.expiresAt) < nowMs
}

/** Signs a document: the bytes to be served, in canonical form. */
export function signPublication(
  members: Omit<PublicationDocument, 'signature'>,
  key: SigningKey,
  domain: string = ownDomain,
): Buffer {
  const message = Buffer.from(`${domain}\n${canonicalJson(members)}`)
  const sig = sign(null, message, key.privateKey).toString('base64')
  const signature = { alg: 'ed25519', keyId: key.solanaAddress, sig }
  return Buffer.from(canonicalJson({ ...members, signature }))
}
