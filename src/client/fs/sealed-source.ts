import { encodeBase64 } from '../../format/base64url.js'
import { plainBytes } from '../bytes.js'
import { ClientError } from '../errors.js'
import type { PayloadSource } from '../payload.js'
import { sealed } from './drive-keys.js'

/** Content as it is uploaded, and the tags that describe the encryption. */
export interface SealedSource {
  readonly source: PayloadSource
  readonly tags: readonly { readonly name: string; readonly value: string }[]
}

/** Up to this content is encrypted at once. */
const wholeBytesMax = 4 * 1024 * 1024
const tagBytes = 16
const blockBytes = 16

interface RunningCipher {
  update(bytes: Uint8Array): Uint8Array
  final(): Uint8Array
  getAuthTag(): Uint8Array
}

interface NativeCiphers {
  createCipheriv(name: 'aes-256-gcm', key: Uint8Array, iv: Uint8Array): RunningCipher
}

/** What Node, Deno and Bun have beside WebCrypto, which encrypts by GCM only what is there as a whole. */
function nativeCiphers(): NativeCiphers | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => NativeCiphers | undefined }
  }
  return process?.getBuiltinModule?.('node:crypto')
}

function tagsOf(cipher: 'AES256-GCM' | 'AES256-CTR', iv: Uint8Array): SealedSource['tags'] {
  return [
    { name: 'Cipher', value: cipher },
    { name: 'Cipher-IV', value: encodeBase64(iv) },
  ]
}

/**
 * Encrypts content as it is read, under a fresh IV, by AES-256-GCM. Browsers use AES-256-CTR above 4 MiB, because WebCrypto can
 * encrypt it piece by piece; the item's signature covers what the tag would. Other clients read both.
 */
export async function sealedSource(key: Uint8Array, plain: PayloadSource): Promise<SealedSource> {
  if (plain.size <= wholeBytesMax) return sealedWhole(key, plain)
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const native = nativeCiphers()
  return native === undefined ? counted(key, plain, iv) : running(native, key, plain, iv)
}

async function sealedWhole(key: Uint8Array, plain: PayloadSource): Promise<SealedSource> {
  const whole = new Uint8Array(plain.size)
  let at = 0
  for await (const piece of plain.open(0)) {
    if (at + piece.length > whole.length) throw changed()
    whole.set(piece, at)
    at += piece.length
  }
  if (at !== whole.length) throw changed()
  const { bytes, tags } = await sealed(key, whole)
  return { tags, source: { size: bytes.length, open: (from) => one(bytes.subarray(from)) } }
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

function changed(): ClientError {
  const advice = 'upload again when the content stays the same'
  return new ClientError('changed-while-read', 'the content has another size than before', advice)
}

/** The bytes from `from` on, of pieces that begin at 0. */
async function* behind(pieces: AsyncIterable<Uint8Array>, from: number): AsyncGenerator<Uint8Array> {
  let at = 0
  for await (const piece of pieces) {
    if (at + piece.length > from) yield piece.subarray(Math.max(0, from - at))
    at += piece.length
  }
}

function running(native: NativeCiphers, key: Uint8Array, plain: PayloadSource, iv: Uint8Array): SealedSource {
  async function* all(): AsyncGenerator<Uint8Array> {
    const cipher = native.createCipheriv('aes-256-gcm', key, iv)
    let read = 0
    for await (const piece of plain.open(0)) {
      read += piece.length
      if (read > plain.size) throw changed()
      yield cipher.update(piece)
    }
    if (read !== plain.size) throw changed()
    cipher.final()
    yield cipher.getAuthTag()
  }
  const size = plain.size + tagBytes
  return { tags: tagsOf('AES256-GCM', iv), source: { size, open: (from) => behind(all(), from) } }
}

/** The counter of a block: the IV and, big-endian, the block's number (counter block IV || 00000000). */
function counterAt(iv: Uint8Array, block: number): Uint8Array<ArrayBuffer> {
  const counter = new Uint8Array(16)
  counter.set(iv)
  new DataView(counter.buffer).setUint32(12, block)
  return counter
}

/** WebCrypto takes whole blocks; what is left of a piece waits for the next. */
async function* encrypted(
  secret: Awaited<ReturnType<typeof crypto.subtle.importKey>>,
  iv: Uint8Array,
  plain: PayloadSource,
): AsyncGenerator<Uint8Array> {
  let rest = new Uint8Array(0)
  let block = 0
  const part = async (bytes: Uint8Array): Promise<Uint8Array> => {
    const how = { name: 'AES-CTR', counter: counterAt(iv, block), length: 128 }
    block += bytes.length / blockBytes
    return new Uint8Array(await crypto.subtle.encrypt(how, secret, plainBytes(bytes)))
  }
  for await (const piece of plain.open(0)) {
    const both = new Uint8Array(rest.length + piece.length)
    both.set(rest)
    both.set(piece, rest.length)
    const whole = both.length - (both.length % blockBytes)
    rest = both.slice(whole)
    if (whole > 0) yield await part(both.subarray(0, whole))
  }
  if (rest.length > 0) yield await part(rest)
}

/** The same without a tag, as web clients write long files. */
export async function counted(key: Uint8Array, plain: PayloadSource, iv: Uint8Array): Promise<SealedSource> {
  const secret = await crypto.subtle.importKey('raw', plainBytes(key), 'AES-CTR', false, ['encrypt'])
  const open = (from: number): AsyncIterable<Uint8Array> => behind(encrypted(secret, iv, plain), from)
  return { tags: tagsOf('AES256-CTR', iv), source: { size: plain.size, open } }
}
