import { sign } from 'node:crypto'
import type { SigningKey } from './keys.js'
import type { Line } from './line.js'

/** What a signature says: every part of it is under the signature. */
export interface Statement {
  readonly status: number
  /** Lower-case names and values of the covered headers, in the order of the answer. */
  readonly covered: readonly Line[]
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

/** Signatures remembered at once; the memory is emptied each second. 4,096 of about 1 KiB are 4 MiB. */
const rememberedMax = 4096

/** A signer. `bindRequest` puts method and path of the request under the signature. */
export function createSigner(key: SigningKey, options: { readonly bindRequest: boolean }): Signer {
  const remembered = new Map<string, string>()
  let second = -1
  return {
    key,
    sign(statement, seconds) {
      if (seconds !== second) {
        remembered.clear()
        second = seconds
      }
      const { base, parameters } = signatureBase(statement, seconds, key.keyId, options.bindRequest)
      const known = remembered.get(base)
      if (known !== undefined) return known
      const signature = sign(null, Buffer.from(base), key.privateKey).toString('base64')
      const lines = `Signature-Input: sig1=${parameters}\r\nSignature: sig1=:${signature}:`
      if (remembered.size < rememberedMax) remembered.set(base, lines)
      return lines
    },
  }
}

/**
 * The text that is signed (RFC 9421 section 2.5) and its `@signature-params` value: `@status`, the covered headers, then
 * `@method` and `@path` of the request where it is bound. Several lines of one name are one component, joined by `, `.
 */
export function signatureBase(
  statement: Statement,
  seconds: number,
  keyId: string,
  bindRequest: boolean,
): { base: string; parameters: string } {
  const values = new Map<string, string>()
  for (const [name, value] of statement.covered) {
    const before = values.get(name)
    values.set(name, before === undefined ? value.trim() : `${before}, ${value.trim()}`)
  }
  const components: [string, string][] = [['"@status"', String(statement.status)]]
  for (const [name, value] of values) components.push([`"${name}"`, value])
  if (bindRequest) {
    components.push(['"@method";req', statement.method], ['"@path";req', statement.path])
  }
  const names = components.map(([name]) => name).join(' ')
  const parameters = `(${names});created=${seconds};keyid="${keyId}";alg="ed25519"`
  const lines = components.map(([name, value]) => `${name}: ${value}`)
  return { base: `${lines.join('\n')}\n"@signature-params": ${parameters}`, parameters }
}
