import type { SigningKey } from './keys.js'

/** What a signature says: every part of it is under the signature. */
export interface Statement {
  readonly status: number
  /** Lower-case names and values of the covered headers, in the order of the answer. */
  readonly covered: readonly (readonly [string, string])[]
  readonly method: string
  /** As the client wrote it, without the query. */
  readonly path: string
}

/** Makes the signature lines of answers (RFC 9421). */
export interface Signer {
  readonly key: SigningKey
  /** Header lines `Signature-Input: ...` CRLF `Signature: ...`. The same words in the same second are signed once. */
  sign(statement: Statement, seconds: number): string
}

/** A signer. `bindRequest` puts method and path of the request under the signature. */
export function createSigner(_key: SigningKey, _options: { readonly bindRequest: boolean }): Signer {
  throw new Error('not built yet')
}
