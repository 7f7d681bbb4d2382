import { decodeBase64 } from '../../format/base64url.js'
import { Gathered } from '../../format/gathered.js'
import { joined } from '../bytes.js'
import { opened, unreadable } from './drive-keys.js'

interface RunningDecipher {
  update(bytes: Uint8Array): Uint8Array
  final(): Uint8Array
  setAuthTag(tag: Uint8Array): void
}

interface NativeDeciphers {
  createDecipheriv(name: 'aes-256-gcm' | 'aes-256-ctr', key: Uint8Array, iv: Uint8Array): RunningDecipher
}

/** What Node, Deno and Bun have beside WebCrypto, which decrypts only what is there as a whole. */
function nativeDeciphers(): NativeDeciphers | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => NativeDeciphers | undefined }
  }
  return process?.getBuiltinModule?.('node:crypto')
}

const tagBytes = 16
const none = new Uint8Array(0)

/**
 * Decrypts content while it comes, where the runtime can; browsers hold it. By AES-256-GCM the last bytes say whether all before
 * them were right: `wrong-key` is thrown in place of the last piece, and what came before must not be used then. AES-256-CTR
 * shows no change.
 */
export async function* openedPieces(
  key: Uint8Array,
  pieces: AsyncIterable<Uint8Array>,
  cipher: string | undefined,
  cipherIv: string | undefined,
): AsyncGenerator<Uint8Array> {
  const native = nativeDeciphers()
  const iv = decodeBase64(cipherIv ?? '')
  const isKnown = cipher === undefined || cipher === 'AES256-GCM' || cipher === 'AES256-CTR'
  if (native === undefined || iv === undefined || ![12, 16].includes(iv.length) || !isKnown) {
    const held = new Gathered()
    for await (const piece of pieces) held.add(piece)
    yield await opened(key, held.bytes(), cipher, cipherIv)
  } else if (cipher === 'AES256-CTR') {
    const counter = iv.length === 16 ? iv : joined(iv, new Uint8Array(4))
    const running = native.createDecipheriv('aes-256-ctr', key, counter)
    for await (const piece of pieces) yield running.update(piece)
  } else yield* openedByTag(native.createDecipheriv('aes-256-gcm', key, iv), pieces)
}

/** The tag is the last 16 bytes: so many are kept back until more come. */
async function* openedByTag(
  running: RunningDecipher,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let kept: Uint8Array = none
  /** Given when more comes, or when the tag was right. */
  let last: Uint8Array | undefined
  for await (const piece of pieces) {
    const both = kept.length === 0 ? piece : joined(kept, piece)
    const ready = Math.max(0, both.length - tagBytes)
    // A copy: a small rest would keep the memory of a long piece.
    kept = both.slice(ready)
    if (ready === 0) continue
    if (last !== undefined) yield last
    last = running.update(both.subarray(0, ready))
  }
  if (kept.length < tagBytes) throw unreadable('it is shorter than its tag')
  running.setAuthTag(kept)
  try {
    running.final()
  } catch (error) {
    if (!(error instanceof Error)) throw error
    throw unreadable('it does not open with this key')
  }
  if (last !== undefined) yield last
}
