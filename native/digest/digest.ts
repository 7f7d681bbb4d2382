import { hash } from 'node:crypto'
import { loadAddon } from '../addon.js'
import { FallbackPass, fallbackBlocks } from './digest-fallback.js'
import type { Cut, DigestPass, Digests } from './digest-pass.js'

interface Addon {
  able(): boolean
  start(blockBytes: number, pieceBytes: number): ArrayBuffer
  update(pass: ArrayBuffer, bytes: Uint8Array, blocks: Uint8Array, pieces: Uint8Array): void
  finish(pass: ArrayBuffer, whole: Uint8Array, blocks: Uint8Array, pieces: Uint8Array): void
  blocks(bytes: Uint8Array, blockBytes: number, digests: Uint8Array): void
  deepen(begun: Uint8Array, blobs: readonly Uint8Array[], out: Uint8Array): void
  deepenBy(begun: Uint8Array, hash: Uint8Array, length: number, out: Uint8Array): void
}

const built = loadAddon<Addon>('digest')
const addon = built?.able() === true ? built : undefined

/**
 * Which way is taken here: the addon, or its slower fallback where it was not built or the processor has no instructions for SHA.
 */
export const digestedBy: 'addon' | 'fallback' = addon === undefined ? 'fallback' : 'addon'

class AddonPass implements DigestPass {
  readonly #addon: Addon
  readonly #cut: Cut
  readonly #pass: ArrayBuffer
  readonly #blocks: Buffer[] = []
  readonly #pieces: Buffer[] = []
  #bytes = 0

  constructor(native: Addon, cut: Cut) {
    this.#addon = native
    this.#cut = cut
    this.#pass = native.start(cut.blockBytes, cut.pieceBytes)
  }

  update(bytes: Uint8Array): void {
    const before = this.#bytes
    this.#bytes += bytes.length
    const within = (length: number): number => Math.floor(this.#bytes / length) - Math.floor(before / length)
    const blocks = Buffer.allocUnsafe(within(this.#cut.blockBytes) * 32)
    const pieces = Buffer.allocUnsafe(within(this.#cut.pieceBytes) * 20)
    this.#addon.update(this.#pass, bytes, blocks, pieces)
    if (blocks.length > 0) this.#blocks.push(blocks)
    if (pieces.length > 0) this.#pieces.push(pieces)
  }

  finish(): Digests {
    const whole = Buffer.allocUnsafe(32)
    const block = Buffer.allocUnsafe(this.#bytes % this.#cut.blockBytes === 0 ? 0 : 32)
    const piece = Buffer.allocUnsafe(this.#bytes % this.#cut.pieceBytes === 0 ? 0 : 20)
    this.#addon.finish(this.#pass, whole, block, piece)
    return {
      whole,
      blocks: Buffer.concat([...this.#blocks, block]),
      pieces: Buffer.concat([...this.#pieces, piece]),
    }
  }
}

/** A pass through the addon; undefined where there is none. */
export function openAddonPass(cut: Cut): DigestPass | undefined {
  return addon === undefined ? undefined : new AddonPass(addon, cut)
}

/** Begins a pass. Throws a RangeError where the cut is none. */
export function openPass(cut: Cut): DigestPass {
  return openAddonPass(cut) ?? new FallbackPass(cut)
}

/**
 * SHA-256 of each block of `blockBytes` (a multiple of 64, below 2^32); the last block may be shorter. Of 64 bytes: the layer
 * above one of a hash tree. Throws a RangeError on other sizes.
 */
export function hashBlocks(bytes: Uint8Array, blockBytes: number): Buffer {
  if (addon === undefined) return fallbackBlocks(bytes, blockBytes)
  const digests = Buffer.allocUnsafe(Math.ceil(bytes.length / blockBytes) * 32)
  addon.blocks(bytes, blockBytes, digests)
  return digests
}

/** From this size on node:crypto is faster, because its cost of a call no longer matters. */
const smallBytes = 4096

/** SHA-256 of some bytes, 32 bytes: of few bytes in a fifth of the time that node:crypto takes for a call. */
export function sha256Of(bytes: Uint8Array): Buffer {
  if (addon === undefined || bytes.length === 0 || bytes.length > smallBytes)
    return hash('sha256', bytes, 'buffer')
  const digest = Buffer.allocUnsafe(32)
  addon.blocks(bytes, Math.ceil(bytes.length / 64) * 64, digest)
  return digest
}

/** Accumulators of deep hashes (src/proof/deep-hash.ts): 48 bytes. */
export interface DeepHashing {
  /** After more blobs. Their bytes are hashed by plain code: node:crypto is faster from some thousand bytes on. */
  deepen(begun: Uint8Array, blobs: readonly Uint8Array[]): Uint8Array
  /** After one more blob of `length` bytes, whose SHA-384 is `hash`. */
  deepenBy(begun: Uint8Array, hash: Uint8Array, length: number): Uint8Array
}

/** Undefined where the addon was not built. It needs no special processor. */
export const nativeDeepHashing: DeepHashing | undefined = built && {
  deepen(begun, blobs) {
    const out = Buffer.allocUnsafe(48)
    built.deepen(begun, blobs, out)
    return out
  },
  deepenBy(begun, hash, length) {
    const out = Buffer.allocUnsafe(48)
    built.deepenBy(begun, hash, length, out)
    return out
  },
}
