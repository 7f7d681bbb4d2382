import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { existsSync } from 'node:fs'
import { readSmall } from '../store/folder.js'
import { keptSecret, replaceSecret } from '../store/secret-file.js'
import { headMessage, type SignedHead } from './ledger-port.js'

/** The Ed25519 key that signs heads of the chain. */
export interface HeadKey {
  /** base64url. */
  sign(sequence: number, head: string, timeMs: number): string
  /** Whether this key signed it, or one before it while that was the key. */
  hasSigned(head: SignedHead): boolean
}

/** Public keys (SubjectPublicKeyInfo, base64url) that were replaced, and until when their signatures count. */
type Retired = readonly { readonly publicKey: string; readonly untilMs: number }[]

/** Reads the key (PKCS#8 PEM, mode 0600), or makes one where the file is missing. Throws where it is no key. */
export function headKey(path: string): HeadKey {
  const key = createPrivateKey(keptSecret(path, newKey))
  const publicKey = createPublicKey(key)
  const retired = readRetired(path).map(({ publicKey: text, untilMs }) => {
    const der = Buffer.from(text, 'base64url')
    return { untilMs, publicKey: createPublicKey({ key: der, format: 'der', type: 'spki' }) }
  })
  const isBy = (by: KeyObject, { sequence, head, timeMs, signature }: SignedHead): boolean =>
    verify(null, headMessage(sequence, head, timeMs), by, Buffer.from(signature, 'base64url'))
  return {
    sign: (sequence, head, timeMs) =>
      sign(null, headMessage(sequence, head, timeMs), key).toString('base64url'),
    hasSigned: (head) =>
      isBy(publicKey, head) || retired.some((one) => head.timeMs <= one.untilMs && isBy(one.publicKey, head)),
  }
}

/**
 * Replaces the key. What it signed up to `nowMs` counts on: its public half is kept beside it, in `PATH.retired.json`. The
 * private half is gone. Throws where there is no key.
 */
export function rotateHeadKey(path: string, nowMs: number): void {
  const old = createPublicKey(createPrivateKey(readSmall(path)))
  const publicKey = old.export({ format: 'der', type: 'spki' }).toString('base64url')
  // Killed between the two steps, the key is in the list and signs on: the next rotation writes a later time.
  const others = readRetired(path).filter((one) => one.publicKey !== publicKey)
  replaceSecret(retiredPath(path), JSON.stringify([...others, { publicKey, untilMs: nowMs }]))
  replaceSecret(path, newKey())
}

function newKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

function retiredPath(path: string): string {
  return `${path}.retired.json`
}

/** Throws where the file is not what was written: a signature must not count by mistake. */
function readRetired(path: string): Retired {
  const list = retiredPath(path)
  const read: unknown = existsSync(list) ? JSON.parse(readSmall(list, 1_048_576)) : []
  if (Array.isArray(read) && read.every(isRetired)) return read
  throw new Error(`${list} does not hold what was written there`)
}

function isRetired(value: unknown): value is Retired[number] {
  const { publicKey, untilMs } = (value ?? {}) as Partial<Retired[number]>
  return typeof publicKey === 'string' && typeof untilMs === 'number'
}
