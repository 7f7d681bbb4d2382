import { sha256 as slowSha256, sha384 as slowSha384 } from '@noble/hashes/sha2.js'
import { type Bytes, plainBytes } from './bytes.js'

/** Hash functions of the formats. Node, Deno and Bun lend their own; browsers hash what is long by WebCrypto. */
export type HashName = 'sha256' | 'sha384'

export interface RunningHash {
  update(bytes: Uint8Array): void
  /** Once only. */
  digest(): Uint8Array
}

interface NativeCrypto {
  createHash(name: HashName): { update(bytes: Uint8Array): unknown; digest(): Uint8Array }
  /** Hashes short bytes in half the time: no object is made. Not everywhere. */
  hash?(name: HashName, bytes: Uint8Array, output: 'buffer'): Uint8Array
}

/** Loaded by name at run time: an import would have to be resolved by every bundler for browsers. */
function nativeCrypto(): NativeCrypto | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => NativeCrypto | undefined }
  }
  return process?.getBuiltinModule?.('node:crypto')
}

const native = nativeCrypto()

/** Whether this program's platform hashes pieces here and fast. */
export const isHashNative = native !== undefined

const slow = { sha256: slowSha256, sha384: slowSha384 }

/** A hash of bytes that come in pieces. */
export function runningHash(name: HashName): RunningHash {
  if (native === undefined) return slow[name].create()
  const hash = native.createHash(name)
  return { update: (bytes) => void hash.update(bytes), digest: () => new Uint8Array(hash.digest()) }
}

function hashOnce(name: HashName, parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts
  if (first !== undefined && parts.length === 1) {
    if (native === undefined) return slow[name](first)
    if (native.hash !== undefined) return new Uint8Array(native.hash(name, first, 'buffer'))
  }
  const hash = runningHash(name)
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** SHA-256 of all parts together. */
export const hash256 = (...parts: readonly Uint8Array[]): Uint8Array => hashOnce('sha256', parts)

/** SHA-384 of all parts together. */
export const hash384 = (...parts: readonly Uint8Array[]): Uint8Array => hashOnce('sha384', parts)

/** The hash of bytes by WebCrypto: on another thread, and several at once. */
export async function digestBeside(name: HashName, bytes: Uint8Array): Promise<Uint8Array> {
  const whole: Bytes = plainBytes(bytes)
  return new Uint8Array(await crypto.subtle.digest(name === 'sha256' ? 'SHA-256' : 'SHA-384', whole))
}

/** Below this WebCrypto's detour over another thread takes longer than hashing here. */
const detourBytes = 16_384

/** The hash of bytes that may be many: where nothing native hashes at once, WebCrypto does. */
export async function digestOf(name: HashName, bytes: Uint8Array): Promise<Uint8Array> {
  if (native !== undefined || bytes.length < detourBytes) return hashOnce(name, [bytes])
  return digestBeside(name, bytes)
}
