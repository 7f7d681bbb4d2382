import { createHash } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { type ManifestLimits, parseManifest } from '../../format/manifest.js'
import { isIntact, packManifest } from '../../format/packed-manifest.js'
import type { Refusal } from '../../format/refusal.js'
import { type FilePart, isMissing } from '../../store/blobs.js'

/** A manifest to be packed. Plain: it travels to another thread. */
export interface PackingTask {
  /** The manifest's text. */
  readonly from: FilePart
  /** An empty file that takes the packed form. */
  readonly to: string
  /** SHA-256 that the text must have; absent: any. */
  readonly digest?: Uint8Array
  readonly limits: ManifestLimits
}

/** `packed`: the form is written, and not synced. `gone`: there is no such text, or it is another by now. */
export type PackingOutcome =
  | { readonly kind: 'packed'; readonly digest: Uint8Array; readonly sizeBytes: number }
  | { readonly kind: 'gone' }
  | { readonly kind: 'too-large' }

/** Heavy work over manifests, done by the pool. Refusal: `busy`. Rejects where the disk fails. */
export interface ManifestPacker {
  pack(task: PackingTask): Promise<PackingOutcome | Refusal>
  /** Whether the file is a whole packed form of the text with this digest, made under these limits. */
  check(task: { path: string; digest: Uint8Array; limits: ManifestLimits }): Promise<boolean | Refusal>
}

async function missingAsUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

async function readPart(part: FilePart, maxBytes: number): Promise<Buffer | 'too-large'> {
  const file = await open(part.path, 'r')
  try {
    const size = part.sizeBytes ?? (await file.stat()).size
    if (size > maxBytes) return 'too-large'
    const bytes = Buffer.alloc(size)
    let done = 0
    while (done < size) {
      const { bytesRead } = await file.read(bytes, done, size - done, (part.offset ?? 0) + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return bytes.subarray(0, done)
  } finally {
    await file.close()
  }
}

/** Does the work on the calling thread: inside the pool, and for tests. */
export class InlinePacker implements ManifestPacker {
  async pack({ from, to, digest, limits }: PackingTask): Promise<PackingOutcome> {
    const text = await missingAsUndefined(readPart(from, limits.sizeBytes))
    if (text === undefined) return { kind: 'gone' }
    if (text === 'too-large') return { kind: 'too-large' }
    const actual = createHash('sha256').update(text).digest()
    if (digest !== undefined && actual.compare(digest) !== 0) return { kind: 'gone' }
    const packed = packManifest(parseManifest(text, limits), actual, limits)
    const file = await open(to, 'r+')
    try {
      await file.writeFile(packed)
    } finally {
      await file.close()
    }
    return { kind: 'packed', digest: actual, sizeBytes: packed.length }
  }

  async check(task: { path: string; digest: Uint8Array; limits: ManifestLimits }): Promise<boolean> {
    const packed = await missingAsUndefined(readFile(task.path))
    return packed !== undefined && isIntact(packed, task.digest, task.limits)
  }
}
