import { decodeBase64url } from '../../format/base64url.js'
import { Gathered } from '../../format/gathered.js'
import { sameBytes } from '../bytes.js'
import { ClientError } from '../errors.js'
import { digestBeside } from '../hash.js'
import type { BelievedBlock } from './agreed-block.js'
import { chainHeader, type Gateways, untrue } from './gateways.js'
import { chunkProven, transactionPlaceProven } from './merkle-proof.js'
import {
  type ProvenTransaction,
  transactionProven,
  type WeavePlace,
  weavePlace,
} from './transaction-proof.js'

interface Chunk {
  readonly start: number
  readonly end: number
  readonly bytes: Uint8Array
}

interface RawChunk {
  readonly bytes: Uint8Array
  readonly path: Uint8Array
  /** From the block's tx_root to the transaction's data root; undefined where the gateway gives none. */
  readonly txPath: Uint8Array | undefined
}

const chunkBytesMax = 262_144
/** Chunks requested ahead of the reader, which hides the latency of a gateway. */
const aheadMax = 8
/** Chunks kept for the next question: headers and payload often lie in the same. */
const keptMax = 16

/** The data of one transaction: every byte that it gives was proven against the data root that the owner signed. */
export class ProvenData {
  readonly #kept = new Map<number, Chunk>()
  #places = new Map<string, Promise<WeavePlace>>()
  /** Set once the place in the weave was proven. */
  #placed: { readonly start: number; readonly block: BelievedBlock } | undefined

  private constructor(
    private readonly gateways: Gateways,
    readonly transaction: ProvenTransaction,
  ) {}

  static async of(gateways: Gateways, id: string, signal?: AbortSignal): Promise<ProvenData> {
    const proven = await gateways.first((gateway) => transactionProven(gateways, gateway, id, signal), signal)
    return new ProvenData(gateways, proven)
  }

  /**
   * Proves where in the weave the data lies, once for all chunks: a tx_path leads from the tx_root of `block` to the data root
   * that the owner signed. It comes with the chunk that has byte `at`. Resolves with the block.
   */
  async placed(
    at: number,
    block: (signal?: AbortSignal) => Promise<BelievedBlock>,
    signal?: AbortSignal,
  ): Promise<BelievedBlock> {
    if (this.#placed !== undefined) return this.#placed.block
    const one = await block(signal)
    const { start } = await this.gateways.first((gateway) => this.#prove(gateway, at, one, signal), signal)
    this.#placed = { start, block: one }
    return one
  }

  async #prove(
    gateway: string,
    at: number,
    { txRoot, before, sizeBytes, hash }: BelievedBlock,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly start: number }> {
    const { id, dataRoot, dataSize } = this.transaction
    const { start } = await this.#place(gateway, signal)
    const raw = await this.#raw(gateway, start + at, signal, true)
    this.#keep(await this.#chunkOf(gateway, at, start + at, raw))
    if (raw.txPath === undefined) {
      const message = `${gateway} does not tell the tx_path of ${id}`
      throw new ClientError('unavailable', message, 'ask another gateway, or do without the block')
    }
    const leaf = transactionPlaceProven(txRoot, raw.txPath, start + at - before - 1, sizeBytes)
    const isThere = leaf !== undefined && before + leaf.start + 1 === start
    if (!isThere || leaf.end - leaf.start !== dataSize || !sameBytes(leaf.dataHash, dataRoot))
      throw untrue(`${gateway}: its tx_path does not lead from the block ${hash} to ${id}`)
    return { start }
  }

  /** Bytes `from` to `to` (exclusive) in pieces. Chunks are fetched ahead, each from the first gateway that can prove it. */
  async *pieces(from: number, to: number, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const ahead: Promise<Chunk>[] = []
    let requested = from
    let at = from
    try {
      while (at < to) {
        for (; ahead.length < aheadMax && requested < to; requested += chunkBytesMax) {
          const one = this.#chunk(requested, signal)
          // Awaited in its turn, or not at all where the reader leaves.
          one.catch((error) => error)
          ahead.push(one)
        }
        const chunk = await (ahead.shift() ?? this.#chunk(at, signal))
        // Chunks are not all of one size: where this one does not continue the last one, the right one is requested.
        const fitting = chunk.start <= at && at < chunk.end ? chunk : await this.#chunk(at, signal)
        yield fitting.bytes.subarray(at - fitting.start, Math.min(fitting.end, to) - fitting.start)
        at = fitting.end
        if (requested < at) requested = at
      }
    } finally {
      await Promise.allSettled(ahead)
    }
  }

  /** A few bytes at once. */
  async bytes(from: number, to: number, signal?: AbortSignal): Promise<Uint8Array> {
    const gathered = new Gathered(to - from)
    for await (const piece of this.pieces(from, to, signal)) gathered.add(piece)
    return gathered.bytes()
  }

  async #chunk(at: number, signal: AbortSignal | undefined): Promise<Chunk> {
    for (const kept of this.#kept.values()) if (kept.start <= at && at < kept.end) return kept
    return this.#keep(await this.gateways.first((gateway) => this.#ask(gateway, at, signal), signal))
  }

  #keep(chunk: Chunk): Chunk {
    this.#kept.set(chunk.start, chunk)
    for (const start of this.#kept.keys()) {
      if (this.#kept.size <= keptMax) break
      this.#kept.delete(start)
    }
    return chunk
  }

  async #ask(gateway: string, at: number, signal: AbortSignal | undefined): Promise<Chunk> {
    const { start } = this.#placed ?? (await this.#place(gateway, signal))
    return this.#chunkOf(gateway, at, start + at, await this.#raw(gateway, start + at, signal))
  }

  async #place(gateway: string, signal: AbortSignal | undefined): Promise<WeavePlace> {
    let place = this.#places.get(gateway)
    if (place === undefined) {
      place = weavePlace(this.gateways, gateway, this.transaction.id, signal)
      this.#places.set(gateway, place)
      place.catch(() => this.#places.delete(gateway))
    }
    return place
  }

  async #chunkOf(gateway: string, at: number, offset: number, { bytes, path }: RawChunk): Promise<Chunk> {
    const { id, dataRoot, dataSize } = this.transaction
    const proven = chunkProven(dataRoot, path, at, dataSize)
    if (proven === undefined || proven.end - proven.start !== bytes.length)
      throw untrue(`${gateway}: the chunk at ${offset} does not belong to ${id}`)
    if (!sameBytes(await digestBeside('sha256', bytes), proven.dataHash))
      throw untrue(`${gateway}: the chunk at ${offset} was changed`)
    return { start: proven.start, end: proven.end, bytes }
  }

  /** Chunk and paths: as bytes with a header where the gateway can, else as JSON. */
  async #raw(
    gateway: string,
    offset: number,
    signal: AbortSignal | undefined,
    withTxPath = false,
  ): Promise<RawChunk> {
    const { gateways } = this
    const response = await gateways.get(`${gateway}/chunk/${offset}/data`, {}, signal, [200, 404])
    const path = decodeBase64url(chainHeader(response.headers, 'chunk-data-path') ?? '=')
    const txPath = decodeBase64url(chainHeader(response.headers, 'chunk-tx-path') || '=')
    if (response.status === 200 && path !== undefined && (txPath !== undefined || !withTxPath))
      return { bytes: await gateways.bytes(response, chunkBytesMax, signal), path, txPath }
    await response.body?.cancel()
    const json = await gateways.json(await gateways.get(`${gateway}/chunk/${offset}`, {}, signal), signal)
    const field = (name: string): Uint8Array | undefined => {
      const text = json[name]
      return typeof text === 'string' && text !== '' ? decodeBase64url(text) : undefined
    }
    const [bytes, dataPath] = [field('chunk'), field('data_path')]
    if (bytes === undefined || dataPath === undefined)
      throw untrue(`${gateway}: the chunk at ${offset} is malformed`)
    return { bytes, path: dataPath, txPath: field('tx_path') }
  }
}
