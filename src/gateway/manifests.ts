import { createHash } from 'node:crypto'
import { entityTag as entityTagOf } from '../attest/trust-headers.js'
import type { Id } from '../format/id.js'
import { type Manifest, parseManifest } from '../format/manifest.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Content } from '../store/content.js'

/** Bytes of manifest text that the parsed ones of a thread may stand for; parsed they take about three times that. */
const keptMaxBytes = 16_777_216

/** Bytes of manifests that a thread reads at once; more readers are told to come again. */
const readingMaxBytes = 67_108_864

const busy = refuse('busy', 'self', 'too many manifests are being read')
const broken = refuse('upstream', 'upstream', 'the manifest could not be read to its end')
const unreadable = refuse('unknown', 'client', 'the manifest cannot be read')

export const manifestType = 'application/x.arweave-manifest+json'

/** Parsed manifests by digest: the same bytes always mean the same, so nothing here is ever stale. */
export class Manifests {
  readonly #kept = new Map<string, { readonly manifest: Manifest; readonly sizeBytes: number }>()
  #keptBytes = 0
  readonly #reading = new Map<Id, Promise<Manifest | Refusal>>()
  #readingBytes = 0

  /** The manifest whose text has this entity tag. */
  get(entityTag: string): Manifest | undefined {
    const found = this.#kept.get(entityTag)
    if (found === undefined) return undefined
    this.#kept.delete(entityTag)
    this.#kept.set(entityTag, found)
    return found.manifest
  }

  /** Reads the text of a manifest that is in memory whole. `entityTag`: undefined where it was not hashed yet. */
  parse(bytes: Uint8Array, entityTag: string | undefined): Manifest | Refusal {
    const manifest = parseManifest(bytes)
    if (isRefusal(manifest)) return manifest.refused === 'malformed' ? unreadable : manifest
    if (bytes.length <= keptMaxBytes) {
      const tag = entityTag ?? entityTagOf(createHash('sha256').update(bytes).digest())
      this.#keep(tag, manifest, bytes.length)
    }
    return manifest
  }

  /** Reads the manifest `id` out of `content` and closes that. Whoever comes meanwhile for the same id gets the same reading. */
  read(id: Id, content: Content, entityTag: string | undefined): Promise<Manifest | Refusal> {
    const running = this.#reading.get(id)
    const { sizeBytes } = content
    if (running !== undefined || this.#readingBytes + sizeBytes > readingMaxBytes) {
      content.close()
      return running ?? Promise.resolve(busy)
    }
    this.#readingBytes += sizeBytes
    const reading = readWhole(content)
      .then((bytes) => (bytes === undefined ? broken : this.parse(bytes, entityTag)))
      .finally(() => {
        this.#reading.delete(id)
        this.#readingBytes -= sizeBytes
      })
    this.#reading.set(id, reading)
    return reading
  }

  #keep(entityTag: string, manifest: Manifest, sizeBytes: number): void {
    if (this.#kept.has(entityTag)) return
    this.#kept.set(entityTag, { manifest, sizeBytes })
    this.#keptBytes += sizeBytes
    for (const [tag, oldest] of this.#kept) {
      if (this.#keptBytes <= keptMaxBytes) break
      this.#kept.delete(tag)
      this.#keptBytes -= oldest.sizeBytes
    }
  }
}

/** The whole of a content, as one buffer, closing it. Undefined where the source broke. */
async function readWhole(content: Content): Promise<Uint8Array | undefined> {
  const { sizeBytes } = content
  const bytes = Buffer.allocUnsafe(sizeBytes)
  try {
    let at = 0
    while (at < sizeBytes) {
      const view = content.read(at, sizeBytes)
      if (view !== undefined) {
        bytes.set(view, at)
        at += view.length
      } else if (!(await content.ready(at, sizeBytes))) return undefined
    }
    return bytes
  } finally {
    content.close()
  }
}
