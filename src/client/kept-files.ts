import { encodeHex } from '../format/hex.js'
import { ClientError } from './errors.js'
import { contentHash } from './folder-index.js'
import { hash256, runningHash } from './hash.js'
import { allBytes, type PayloadSource, sourceOfBytes } from './payload.js'

/** A file of a folder, as far as it matters here. */
interface KeptFile {
  readonly path: string
  readonly source: PayloadSource
}

/** What is kept of all files together; what is beyond is read again. */
const keptBytesMax = 64 * 1024 * 1024

/** Short files between their hashing and their upload: opening a file takes longer than all else that is done with 4 KiB. */
export class KeptFiles {
  readonly #kept = new Map<KeptFile, Uint8Array>()
  #bytes = 0

  /** SHA-256 of a file in hexadecimal digits. It is kept where it has at most `keepBytesMax` bytes and there is room. */
  async hash(file: KeptFile, keepBytesMax: number): Promise<string> {
    const { source } = file
    if (source.size > keepBytesMax || this.#bytes + source.size > keptBytesMax) return contentHash(source)
    this.#bytes += source.size
    const bytes = await allBytes(source)
    this.#kept.set(file, bytes)
    // One that has grown is not what was counted.
    if (bytes.length > source.size) this.forget(file)
    return encodeHex(hash256(bytes))
  }

  /** Content that fails where it is not what was hashed before: its tag would name other bytes. */
  content(file: KeptFile, hash: string): PayloadSource {
    const kept = this.#kept.get(file)
    return sameContent(file.path, kept === undefined ? file.source : sourceOfBytes(kept), hash)
  }

  /** The same at once, where it is kept. */
  bytes(file: KeptFile, hash: string): Uint8Array | undefined {
    const kept = this.#kept.get(file)
    if (kept !== undefined && encodeHex(hash256(kept)) !== hash) throw changed(file.path)
    return kept
  }

  /** A file is uploaded, or need not be. */
  forget(file: KeptFile): void {
    if (this.#kept.delete(file)) this.#bytes -= file.source.size
  }
}

function sameContent(path: string, source: PayloadSource, hash: string): PayloadSource {
  return {
    size: source.size,
    async *open(from) {
      const running = from === 0 ? runningHash('sha256') : undefined
      for await (const piece of source.open(from)) {
        running?.update(piece)
        yield piece
      }
      if (running !== undefined && encodeHex(running.digest()) !== hash) throw changed(path)
    },
  }
}

function changed(path: string): ClientError {
  const advice = 'upload again when the content stays the same'
  return new ClientError('changed-while-read', `${path} changed after it was hashed`, advice)
}
