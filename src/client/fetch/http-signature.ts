import { decodeBase64, decodeBase64url } from '../../format/base64url.js'
import { utf8 } from '../bytes.js'
import { isEd25519Signed } from '../curve25519.js'

/** An answer and the words of its request, as far as a signature can cover them. */
export interface SignedResponse {
  readonly status: number
  readonly headers: Headers
  readonly method: string
  /** Without the query. */
  readonly path: string
}

/** `keyId`: who signed; `covered`: lower-case names of the headers under the signature. */
export interface ResponseSignature {
  readonly keyId: string
  readonly covered: ReadonlySet<string>
}

/**
 * Checks the signature of an answer (RFC 9421, Ed25519, key in `keyid`). `unsigned` where there is none, `false` where it does
 * not hold. A valid signature proves only that the owner of the key made this statement.
 */
export async function responseSignature(
  answer: SignedResponse,
): Promise<ResponseSignature | 'unsigned' | false> {
  const input = answer.headers.get('signature-input')
  const given = answer.headers.get('signature')
  if (input === null || given === null) return 'unsigned'
  const [, label = '', list = '', parameters = ''] =
    /^\s*([a-z][\w.*-]*)=\(([^)]*)\)((?:;[^,]*)?)/.exec(input) ?? []
  const signature = decodeBase64(new RegExp(`(?:^|[,\\s])${escaped(label)}=:([^:]*):`).exec(given)?.[1] ?? '')
  const keyId = /;keyid="([^"]*)"/.exec(parameters)?.[1] ?? ''
  const algorithm = /;alg="([^"]*)"/.exec(parameters)?.[1]
  const key = keyId.startsWith('ed25519:') ? decodeBase64url(keyId.slice(8)) : undefined
  if (label === '' || signature?.length !== 64 || key?.length !== 32) return false
  if (algorithm !== undefined && algorithm !== 'ed25519') return false
  const components = [...list.matchAll(/"([^"]+)"(;req)?/g)]
  const lines: string[] = []
  for (const [spelled, name = '', request] of components) {
    const value = componentOf(answer, name, request !== undefined)
    if (value === undefined) return false
    lines.push(`${spelled}: ${value}`)
  }
  const base = [...lines, `"@signature-params": (${list})${parameters}`].join('\n')
  if (!(await isEd25519Signed(key, utf8(base), signature))) return false
  return { keyId, covered: new Set(components.map(([, name = '']) => name)) }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\-]/g, '\\$&')
}

function componentOf(answer: SignedResponse, name: string, ofRequest: boolean): string | undefined {
  if (name === '@status' && !ofRequest) return String(answer.status)
  if (name === '@method' && ofRequest) return answer.method
  if (name === '@path' && ofRequest) return answer.path
  return name.startsWith('@') || ofRequest ? undefined : (answer.headers.get(name) ?? undefined)
}
