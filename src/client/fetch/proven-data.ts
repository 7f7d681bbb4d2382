import { fromBase64url, joined, sameBytes } from '../bytes.js'
import { digestBeside } from '../hash.js'
import { chainHeader, type Gateways, untrue } from './gateways.js'
import { chunkProven } from './merkle-proof.js'
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

const chunkBytesMax = 262_144
/** Chunks asked for ahead of the reader: what hides the way to a gateway and back. */
const aheadMax = 8
/** Chunks kept for the next question: headers and payload often lie in the same. */
const keptMax = 16

/** The data of one transaction: every byte that it gives was proven against the data root that the owner signed. */
export class ProvenData {
  readonly #kept = new Map<number, Chunk>()
  #places = new Map<string, Promise<WeavePlace>>()

  private constructor(
    private readonly gateways: Gateways,
    readonly transaction: ProvenTransaction,
  ) {}

  static async of(gateways: Gateways, id: string, signal?: AbortSignal): Promise<ProvenData> {
    const proven = await gateways.first((gateway) => transactionProven(gateways, gateway, id, signal), signal)
    return new ProvenData(gateways, proven)
  }

  /** Bytes `from` to `to` (exclusive) in pieces. Chunks are fetched ahead, each from the first gateway that can prove it. */
  async *pieces(from: number, to: number, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const ahead: Promise<Chunk>[] = []
    let asked = from
    let at = from
    try {
      while (at < to) {
        for (; ahead.length < aheadMax && asked < to; asked += chunkBytesMax) {
          const one = this.#chunk(asked, signal)
          // Awaited in its turn, or not at all where the reader leaves.
          one.catch((error) => error)
          ahead.push(one)
        }
        const chunk = await (ahead.shift() ?? this.#chunk(at, signal))
        // Chunks are not all of one size: where this one does not go on from the last, the right one is asked for.
        const fitting = chunk.start <= at && at < chunk.end ? chunk : await this.#chunk(at, signal)
        yield fitting.bytes.subarray(at - fitting.start, Math.min(fitting.end, to) - fitting.start)
        at = fitting.end
        if (asked < at) asked = at
      }
    } finally {
      await Promise.allSettled(ahead)
    }
  }

  /** A few bytes at once. */
  async bytes(from: number, to: number, signal?: AbortSignal): Promise<Uint8Array> {
    const pieces: Uint8Array[] = []
    for await (const piece of this.pieces(from, to, signal)) pieces.push(piece)
    return joined(...pieces)
  }

  async #chunk(at: number, signal: AbortSignal | undefined): Promise<Chunk> {
    for (const kept of this.#kept.values()) if (kept.start <= at && at < kept.end) return kept
    const chunk = await this.gateways.first((gateway) => this.#ask(gateway, at, signal), signal)
    this.#kept.set(chunk.start, chunk)
    for (const start of this.#kept.keys()) {
      if (this.#kept.size <= keptMax) break
      this.#kept.delete(start)
    }
    return chunk
  }

  async #ask(gateway: string, at: number, signal: AbortSignal | undefined): Promise<Chunk> {
    const { id, dataRoot, dataSize } = this.transaction
    let place = this.#places.get(gateway)
    if (place === undefined) {
      place = weavePlace(this.gateways, gateway, id, signal)
      this.#places.set(gateway, place)
      place.catch(() => this.#places.delete(gateway))
    }
    const offset = (await place).start + at
    const { bytes, path } = await this.#raw(gateway, offset, signal)
    const proven = chunkProven(dataRoot, path, at, dataSize)
    if (proven === undefined || proven.end - proven.start !== bytes.length)
      throw untrue(`${gateway}: the chunk at ${offset} does not belong to ${id}`)
    if (!sameBytes(await digestBeside('sha256', bytes), proven.dataHash))
      throw untrue(`${gateway}: the chunk at ${offset} was changed`)
    return { start: proven.start, end: proven.end, bytes }
  }

  /** Chunk and path: as bytes with a header where the gateway can, else as JSON. */
  async #raw(
    gateway: string,
    offset: number,
    signal: AbortSignal | undefined,
  ): Promise<{ bytes: Uint8Array; path: Uint8Array }> {
    const { gateways } = this
    const response = await gateways.get(`${gateway}/chunk/${offset}/data`, {}, signal, [200, 404])
    const path = fromBase64url(chainHeader(response.headers, 'chunk-data-path') ?? '=')
    if (response.status === 200 && path !== undefined)
      return { bytes: await gateways.bytes(response, chunkBytesMax, signal), path }
    await response.body?.cancel()
    const json = await gateways.json(await gateways.get(`${gateway}/chunk/${offset}`, {}, signal), signal)
    const [bytes, told] = [json.chunk, json.data_path].map((text) => fromBase64url(String(text)))
    if (bytes === undefined || told === undefined)
      throw untrue(`${gateway}: the chunk at ${offset} is malformed`)
    return { bytes, path: told }
  }
}
