import { createPublicKey, verify } from 'node:crypto'
import {
  type Dictionary,
  type InnerList,
  type Item,
  isInnerList,
  ParseError,
  parseDictionary,
  serializeInnerList,
  serializeItem,
} from 'structured-headers'
import { decodeBase64url } from '../format/base64url.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'

/** An answer as a client received it, with method and path of its request. */
export interface SignedAnswer {
  readonly status: number
  /** Value of a header (lower-case name), several lines joined by ', '. */
  header(name: string): string | undefined
  readonly method: string
  /** Without the query. */
  readonly path: string
}

/** A valid signature. */
export interface Vouched {
  /** Who signed, as `keyid` says: `ed25519:` and the public key. */
  readonly keyId: string
  /** Seconds since 1970. */
  readonly created: number | undefined
  /** Names of the components under the signature. */
  readonly components: readonly string[]
}

/** SubjectPublicKeyInfo of an Ed25519 key is this and the 32 bytes of the key (RFC 8410). */
const publicKeyHead = Buffer.from('302a300506032b6570032100', 'hex')

function bad(message: string): Refusal {
  return refuse('forged', 'upstream', `response signature: ${message}`)
}

/**
 * Verifies the first signature of an answer (RFC 9421 section 3.2) by the key that its keyid names. It proves that the holder of
 * that key signed this answer. The caller decides whether the key is trusted. Refusals: `unknown` (not signed), `forged`.
 */
export function verifyAnswer(answer: SignedAnswer): Vouched | Refusal {
  const inputs = answer.header('signature-input')
  const signatures = answer.header('signature')
  if (inputs === undefined || signatures === undefined)
    return refuse('unknown', 'upstream', 'the answer is not signed')
  const [label, input] = dictionaryOf(inputs)?.entries().next().value ?? []
  if (label === undefined || input === undefined || !isInnerList(input))
    return bad('Signature-Input is malformed')
  const [signature] = dictionaryOf(signatures)?.get(label) ?? []
  if (!(signature instanceof ArrayBuffer)) return bad(`Signature has no bytes for ${label}`)
  const key = keyOf(input)
  if (isRefusal(key)) return key
  const base = baseOf(answer, input)
  if (isRefusal(base)) return base
  if (!verify(null, Buffer.from(base), key.publicKey, new Uint8Array(signature)))
    return bad('it is not valid')
  const [items, parameters] = input
  const created = parameters.get('created')
  return {
    keyId: key.keyId,
    created: typeof created === 'number' ? created : undefined,
    components: items.map((item) => serializeItem(item)),
  }
}

/** A dictionary field (RFC 9651), several lines joined with a comma; undefined where it is malformed. */
function dictionaryOf(field: string): Dictionary | undefined {
  try {
    return parseDictionary(field)
  } catch (error) {
    if (error instanceof ParseError) return undefined
    throw error
  }
}

function keyOf([, parameters]: InnerList):
  | { keyId: string; publicKey: ReturnType<typeof createPublicKey> }
  | Refusal {
  const keyId = parameters.get('keyid')
  const algorithm = parameters.get('alg')
  if (algorithm !== undefined && algorithm !== 'ed25519') return bad('the algorithm is not ed25519')
  const raw =
    typeof keyId === 'string' && keyId.startsWith('ed25519:') ? decodeBase64url(keyId.slice(8)) : undefined
  if (typeof keyId !== 'string' || raw?.length !== 32) return bad('keyid names no Ed25519 key')
  const spki = Buffer.concat([publicKeyHead, raw])
  return { keyId, publicKey: createPublicKey({ key: spki, format: 'der', type: 'spki' }) }
}

function baseOf(answer: SignedAnswer, input: InnerList): string | Refusal {
  const lines: string[] = []
  for (const component of input[0]) {
    const value = valueFor(answer, component)
    if (value === undefined) return bad(`the component ${serializeItem(component)} is not there`)
    lines.push(`${serializeItem(component)}: ${value}`)
  }
  return [...lines, `"@signature-params": ${serializeInnerList(input)}`].join('\n')
}

function valueFor(answer: SignedAnswer, [name, parameters]: Item): string | undefined {
  const ofRequest = parameters.get('req') === true
  if (typeof name !== 'string' || parameters.size > (ofRequest ? 1 : 0)) return undefined
  if (name === '@status') return ofRequest ? undefined : String(answer.status)
  if (name === '@method') return ofRequest ? answer.method : undefined
  if (name === '@path') return ofRequest ? answer.path : undefined
  return name.startsWith('@') || ofRequest ? undefined : answer.header(name)
}
