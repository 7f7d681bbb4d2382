import { blockBytes, rootOf, type Torrent, type TorrentFile } from './torrent.js'
import { layerAbove, zeroNode } from './tree.js'
import type { HashSpan } from './wire.js'

/** Hashes that a peer may request at once: BEP 52 has no bound, programs in use request 512. */
const lengthMax = 512

/** Answers hash requests for one torrent (BEP 52). Layers above the pieces are computed with the first request, and kept. */
export class HashAnswers {
  readonly #files = new Map<string, TorrentFile>()
  readonly #layers = new Map<TorrentFile, Uint8Array[]>()
  readonly #pieceHeight: number

  constructor(torrent: Torrent) {
    this.#pieceHeight = Math.log2(torrent.pieceBytes / blockBytes)
    for (const file of torrent.files) {
      const root = file.pieces > 1 ? rootOf(file, torrent.pieceBytes) : undefined
      if (root !== undefined) this.#files.set(Buffer.from(root).toString('latin1'), file)
    }
  }

  /**
   * The requested hashes, and after them the uncle hashes that lead to the root; undefined where the request is to be
   * rejected. Layers below the pieces are not given out, because the file would have to be read and hashed for each
   * request.
   */
  answer({ root, baseLayer, index, length, proofLayers }: HashSpan): Buffer | undefined {
    const file = this.#files.get(root.toString('latin1'))
    if (file === undefined || baseLayer < this.#pieceHeight) return undefined
    const layers = this.#layersOf(file)
    const base = baseLayer - this.#pieceHeight
    const rootHeight = layers.length - 1
    const width = 2 ** (rootHeight - base)
    const height = Math.log2(length)
    const fits = Number.isInteger(height) && length >= 2 && length <= Math.min(lengthMax, width)
    if (!fits || index % length !== 0 || index >= width) return undefined
    const hashes: Uint8Array[] = []
    for (let at = index; at < index + length; at += 1) hashes.push(this.#node(layers, base, at))
    // Proof layers are counted from the base; those inside of the requested range follow from it, and the root is known.
    let node = index / length
    const uncles = Math.max(0, proofLayers - (height - 1))
    for (let up = 0; up < uncles && base + height + up < rootHeight; up += 1) {
      hashes.push(this.#node(layers, base + height + up, node ^ 1))
      node >>= 1
    }
    return Buffer.concat(hashes)
  }

  #node(layers: readonly Uint8Array[], layer: number, index: number): Uint8Array {
    const nodes = layers[layer]!
    const from = index * 32
    return from < nodes.length ? nodes.subarray(from, from + 32) : zeroNode(this.#pieceHeight + layer)
  }

  /** From the pieces up to the root. */
  #layersOf(file: TorrentFile): readonly Uint8Array[] {
    const known = this.#layers.get(file)
    if (known !== undefined) return known
    const layers = [file.layer]
    for (let top = file.layer; top.length > 32; ) {
      top = layerAbove(top, this.#pieceHeight + layers.length - 1)
      layers.push(top)
    }
    this.#layers.set(file, layers)
    return layers
  }
}
