import { type BorrowedKey, borrowedKeyOf } from '../../native/ed25519/ed25519.js'
import { Recent } from '../store/recent.js'
import type { SigningKey } from './keys.js'
import type { Line } from './line.js'

/** What is signed: every field of it is covered by the signature. */
export interface Statement {
  readonly status: number
  /** Lower-case names and values of the covered headers, in the order of the answer. */
  readonly covered: readonly Line[]
  readonly method: string
  /** The path as the client wrote it, without the query. */
  readonly path: string
}

/** Makes the signature lines of answers (RFC 9421). */
export interface Signer {
  readonly key: SigningKey
  /** So old may a signature be when it goes out. 0: of this very second. */
  readonly reuseSeconds: number
  /**
   * Header lines `Signature-Input: ...` CRLF `Signature: ...`, made in the second `seconds`. Where the same words were signed
   * not longer ago than `reuseSeconds`, those of then.
   */
  sign(statement: Statement, seconds: number): string
  /** The same, always anew: for who keeps them. */
  fresh(statement: Statement, seconds: number): string
  /** What a server needs that signs what it sends again by itself. Absent: there is no addon. */
  readonly borrowed?: { readonly key: BorrowedKey; readonly reuseSeconds: number } | undefined
}

/** Signatures remembered at least; at most twice as many. Each takes about 1.5 KiB. */
const rememberedMax = 2048

interface Remembered {
  readonly lines: string
  readonly seconds: number
}

/**
 * True where what was signed in the second `made` may go out in the second `now`. Not where the clock was set back: nobody
 * believes a signature of tomorrow.
 */
export function isReusable(made: number, now: number, reuseSeconds: number): boolean {
  return now >= made && now - made <= reuseSeconds
}

/** A signer. `bindRequest` includes method and path of the request in what is signed. */
export function createSigner(
  key: SigningKey,
  { bindRequest, reuseSeconds = 0 }: { readonly bindRequest: boolean; readonly reuseSeconds?: number },
): Signer {
  const remembered = new Recent<string, Remembered>(rememberedMax)
  const linesOf = (parameters: string, signature: Buffer): string =>
    `Signature-Input: sig1=${parameters}\r\nSignature: sig1=:${signature.toString('base64')}:`
  const fresh = (statement: Statement, seconds: number): string => {
    const { base, parameters } = signatureBase(statement, seconds, key.keyId, bindRequest)
    return linesOf(parameters, key.sign(Buffer.from(base)))
  }
  const borrowed = borrowedKeyOf(key.privateKey)
  return {
    key,
    reuseSeconds,
    fresh,
    sign(statement, seconds) {
      const { base } = signatureBase(statement, 0, key.keyId, bindRequest)
      const known = remembered.get(base)
      if (known !== undefined && isReusable(known.seconds, seconds, reuseSeconds)) return known.lines
      const lines = fresh(statement, seconds)
      remembered.set(base, { lines, seconds })
      return lines
    },
    borrowed: borrowed && { key: borrowed, reuseSeconds },
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
  let names = '"@status"'
  let lines = `"@status": ${statement.status}\n`
  for (const [name, value] of joined(statement.covered)) {
    names += ` "${name}"`
    lines += `"${name}": ${value}\n`
  }
  if (bindRequest) {
    names += ' "@method";req "@path";req'
    lines += `"@method";req: ${statement.method}\n"@path";req: ${statement.path}\n`
  }
  const parameters = `(${names});created=${seconds};keyid="${keyId}";alg="ed25519"`
  return { base: `${lines}"@signature-params": ${parameters}`, parameters }
}

/**
 * Lines without the space around their values, several of one name as one (RFC 9421 section 2.1). What is joined keeps the space
 * behind its last comma, where the last value is empty. Most answers have no such lines.
 */
function joined(lines: readonly Line[]): readonly Line[] {
  const names = new Set<string>()
  for (const [name] of lines) names.add(name)
  if (names.size === lines.length) return lines.map(([name, value]) => [name, value.trim()])
  const values = new Map<string, string>()
  for (const [name, value] of lines) {
    const before = values.get(name)
    values.set(name, before === undefined ? value.trim() : `${before}, ${value.trim()}`)
  }
  return [...values]
}
