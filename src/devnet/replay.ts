import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeBase64url } from '../format/base64url.js'
import type { BaseLayer, MinedPlace, NodeRecord } from './base-layer.js'
import { priceOf, usualWinstonPerByte } from './devnet-price.js'

/**
 * A folder of real node JSON as a chain that does not grow:
 *
 *     blocks/<indep_hash>.json  blocks-by-height.json (height -> indep_hash)
 *     transactions/<id>.json    transactions/offsets/<id>.json    genesis/<id>.json
 *     chunks/<absolute offset>.json
 *
 * A file that is not JSON throws, because the folder comes from the operator. Names from requests become paths, so the
 * routes let through only ids, hashes and numbers.
 */
export class ReplayLayer implements BaseLayer {
  readonly #path: string
  readonly #heights: ReadonlyMap<number, string>
  readonly #tip: number
  /** Transaction to its block, where the folder has it. */
  readonly #blocks = new Map<string, { readonly height: number; readonly hash: string }>()
  readonly #chunkNames: ReadonlySet<string>
  /** Where data lies, for transactions that no block of the folder lists. */
  readonly #offsets: ReadonlyMap<string, { readonly start: number; readonly end: number }>

  constructor(path: string) {
    this.#path = path
    const heights = Object.entries(load(join(path, 'blocks-by-height.json')) ?? {})
    this.#heights = new Map(heights.map(([height, hash]) => [Number(height), String(hash)]))
    if (this.#heights.size === 0) throw new Error(`${path} holds no blocks-by-height.json`)
    this.#tip = Math.max(...this.#heights.keys())
    this.#chunkNames = new Set(names(join(path, 'chunks')))
    this.#offsets = new Map(
      names(join(path, 'transactions', 'offsets')).map((id) => {
        const { size, offset } = load(join(path, 'transactions', 'offsets', `${id}.json`)) ?? {}
        const end = Number(offset)
        return [id, { start: end - Number(size) + 1, end }]
      }),
    )
    for (const [height, hash] of this.#heights) {
      const { txs } = this.blockOf(hash) ?? {}
      for (const id of Array.isArray(txs) ? txs : []) this.#blocks.set(String(id), { height, hash })
    }
    const genesis = String(this.blockAt(1)?.previous_block ?? '')
    for (const id of names(join(path, 'genesis'))) this.#blocks.set(id, { height: 0, hash: genesis })
  }

  info(): NodeRecord {
    return {
      network: 'sluice.replay',
      version: 5,
      release: 1,
      height: this.#tip,
      current: this.#heights.get(this.#tip),
      blocks: this.#heights.size,
      peers: 0,
      queue_length: 0,
      node_state_latency: 0,
    }
  }

  height(): number {
    return this.#tip
  }

  blockAt(height: number): NodeRecord | undefined {
    const hash = this.#heights.get(height)
    return hash === undefined ? undefined : this.blockOf(hash)
  }

  blockOf(hash: string): NodeRecord | undefined {
    return load(join(this.#path, 'blocks', `${hash}.json`))
  }

  transaction(id: string): NodeRecord | undefined {
    return (
      load(join(this.#path, 'transactions', `${id}.json`)) ?? load(join(this.#path, 'genesis', `${id}.json`))
    )
  }

  /** Every transaction of the folder is mined, also where its block is not there. */
  place(id: string): MinedPlace {
    const block = this.#blocks.get(id)
    return { ...(block === undefined ? {} : { block }), ...this.#offsets.get(id) }
  }

  data(id: string): Iterable<Uint8Array> | undefined {
    const inline = this.transaction(id)?.data
    if (typeof inline === 'string' && inline !== '') return [decodeBase64url(inline) ?? new Uint8Array()]
    const offset = this.#offsets.get(id)
    if (offset === undefined) return undefined
    const pieces: Uint8Array[] = []
    for (let at = offset.start; at <= offset.end; ) {
      const piece = decodeBase64url(String(this.chunk(at)?.chunk ?? ''))
      if (piece === undefined || piece.length === 0) return undefined
      pieces.push(piece)
      at += piece.length
    }
    return pieces
  }

  chunk(offset: number): NodeRecord | undefined {
    const name = this.#chunkNames.has(String(offset)) ? String(offset) : this.#chunkAround(offset)
    const record = name === undefined ? undefined : load(join(this.#path, 'chunks', `${name}.json`))
    return record === undefined ? undefined : { packing: 'unpacked', ...record }
  }

  /** The file whose chunk holds `offset` without being named after it; only where the transaction's place is known. */
  #chunkAround(offset: number): string | undefined {
    const around = [...this.#offsets.values()].find(({ start, end }) => start <= offset && offset <= end)
    if (around === undefined) return undefined
    return [...this.#chunkNames].find((name) => {
      const named = Number(name)
      if (named < around.start || named > around.end) return false
      const { chunk, data_path } = load(join(this.#path, 'chunks', `${name}.json`)) ?? {}
      const size = decodeBase64url(String(chunk))?.length ?? 0
      // A path ends with the end of its chunk in the data, 32 bytes big-endian; 6 of them hold every real size.
      const path = Buffer.from(String(data_path), 'base64url')
      const end = around.start + path.readUIntBE(path.length - 6, 6)
      return offset >= end - size && offset < end
    })
  }

  pending(): string[] {
    return []
  }

  anchor(): string {
    return this.#heights.get(this.#tip) ?? ''
  }

  price(sizeBytes: number): bigint {
    return priceOf(sizeBytes, false, usualWinstonPerByte)
  }

  balance(): bigint {
    return 0n
  }

  lastTransaction(): string {
    return ''
  }
}

function load(file: string): NodeRecord | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as NodeRecord) : undefined
}

function names(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -5))
}
