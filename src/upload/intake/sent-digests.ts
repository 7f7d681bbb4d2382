import { createHash } from 'node:crypto'
import { ParseError, parseDictionary } from 'structured-headers'
import type { Request } from '../../http/exchange.js'
import type { UploadAnswer } from '../requests/upload-answers.js'

/** Algorithms of RFC 9530 that are safe against forgers. Others are passed over, as the document allows. */
const algorithms = { 'sha-256': 'sha256', 'sha-512': 'sha512' } as const
type Algorithm = keyof typeof algorithms

/** A digest that a client sent along. */
export interface SentDigest {
  readonly algorithm: Algorithm
  /** Base64. */
  readonly value: string
}

/** The digests of a Content-Digest or Repr-Digest field (RFC 9530); none where it is malformed. */
export function sentDigests(field: string | undefined): SentDigest[] {
  if (field === undefined) return []
  try {
    return [...parseDictionary(field)].flatMap(([name, [value]]) =>
      name in algorithms && value instanceof ArrayBuffer
        ? [{ algorithm: name as Algorithm, value: Buffer.from(value).toString('base64') }]
        : [],
    )
  } catch (error) {
    if (error instanceof ParseError) return []
    throw error
  }
}

/** SHA-256 (base64) of the whole item, from the header fields that state it; undefined: none does. */
export function wholeDigestIn(
  request: Pick<Request, 'header'>,
  ...fields: readonly string[]
): string | undefined {
  const digests = fields.flatMap((field) => sentDigests(request.header(field)))
  return digests.find(({ algorithm }) => algorithm === 'sha-256')?.value
}

/** Whether bytes are those that a client meant to send. */
export class DigestCheck {
  readonly #wanted: readonly (SentDigest & { readonly hash: ReturnType<typeof createHash> })[]

  constructor(wanted: readonly SentDigest[]) {
    this.#wanted = wanted.map((one) => ({ ...one, hash: createHash(algorithms[one.algorithm]) }))
  }

  update(bytes: Uint8Array): void {
    for (const { hash } of this.#wanted) hash.update(bytes)
  }

  /** After the last byte, once. */
  isRight(): boolean {
    return this.#wanted.every(({ hash, value }) => hash.digest('base64') === value)
  }
}

/** The bytes that came have another digest: the problem type of draft-ietf-httpapi-digest-fields-problem-types. */
export const digestMismatch: UploadAnswer = {
  status: 400,
  json: {
    type: 'https://iana.org/assignments/http-problem-types#digest-mismatching-values',
    title: 'the bytes do not have the digest that was sent along',
    status: 400,
  },
  type: 'application/problem+json',
}
