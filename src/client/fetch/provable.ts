import { isId } from '../../format/id.js'
import { payloadDigest } from '../deep-digest.js'
import { ClientError } from '../errors.js'
import { typeTagOf } from '../media-type.js'
import { type Gateways, gatewayHeader, untrue } from './gateways.js'
import { checkOwner } from './item-head.js'
import { findItem } from './item-place.js'
import { ProvenData } from './proven-data.js'
import type { ReadTwice } from './read-twice.js'
import { SharedWork } from './shared-work.js'

/**
 * `owner`: the owner of the id signed all of the content, and that was checked. `chunks`: the id is a transaction, and the chunks
 * lead to the data root that its owner signed.
 */
export type Proof = 'owner' | 'chunks'

/** A content whose bytes can be had in pieces, each proven before it is given. */
export interface Provable {
  readonly start: number
  readonly end: number
  readonly contentType: string | undefined
  readonly proof: Proof
  /** The root that the bytes are proven to lie in, where they were read by chunks. */
  readonly data?: ProvenData
  pieces(from: number, to: number, signal?: AbortSignal): AsyncGenerator<Uint8Array>
}

/** Contents that were checked and are kept for the next range. */
const keptMax = 8

/**
 * Contents that are proven in pieces. The data of a transaction is proven by chunks. A data item has no such proof: whoever posts
 * a bundle can list an item's id and copy its header in front of other bytes. So an item is read once as a whole for its owner's
 * signature, before a byte of any range of it is given.
 */
export class Provables {
  readonly #known = new SharedWork<Provable>(keptMax)
  readonly #roots = new SharedWork<ProvenData>(keptMax)

  /** `isPlaced`: items are read by the chunks of their root, so that the block of the root can be proven for them. */
  constructor(
    private readonly gateways: Gateways,
    private readonly isPlaced: boolean,
  ) {}

  /** Rejects with `untrue` where no gateway has what the owner of the id signed. */
  of(id: string, signal?: AbortSignal): Promise<Provable> {
    return this.#known.of(
      id,
      (shared) => this.gateways.first((gateway) => this.#ask(gateway, id, shared), shared),
      signal,
    )
  }

  async #ask(gateway: string, id: string, signal: AbortSignal): Promise<Provable> {
    const { gateways } = this
    const head = { range: 'bytes=0-0' }
    const response = await gateways.get(`${gateway}/raw/${id}`, head, signal, [200, 206, 416])
    await response.body?.cancel()
    const root = gatewayHeader(response.headers, 'root-transaction-id')
    if (root === undefined || root === id) {
      const found = await this.#transaction(id, signal, root === undefined && !this.isPlaced)
      if (found !== undefined) return found
    }
    if (!this.isPlaced || root === undefined) return this.#twice(gateway, id, signal)
    const path = gatewayHeader(response.headers, 'root-path')?.split(',').slice(1) ?? []
    return this.#placed(gateway, root, [...path, id], signal)
  }

  /** Undefined: it is no transaction, and may be an item that is in no block yet. */
  async #transaction(id: string, signal: AbortSignal, mayBeItem: boolean): Promise<Provable | undefined> {
    try {
      const data = await this.#root(id, signal)
      const { dataSize, contentType } = data.transaction
      return { start: 0, end: dataSize, contentType, proof: 'chunks', data, pieces: piecesOf(data) }
    } catch (error) {
      if (mayBeItem && error instanceof ClientError && error.code === 'not-found') return undefined
      throw error
    }
  }

  /** An item, whole for its owner's signature; then in parts, against the digests that were kept of the first time. */
  async #twice(gateway: string, id: string, signal: AbortSignal): Promise<Provable> {
    // Seldom wanted, so it is loaded then.
    const { ReadTwice: reading } = await import('./read-twice.js')
    const read: ReadTwice = await reading.of(this.gateways, gateway, id, signal)
    const contentType = typeTagOf(read.header.tags)
    const pieces: Provable['pieces'] = (from, to, reader) => read.pieces(from, to, reader)
    return { start: 0, end: read.size, contentType, proof: 'owner', pieces }
  }

  /** An item by the chunks of its root: all of them once for its owner's signature. */
  async #placed(
    gateway: string,
    root: string,
    path: readonly string[],
    signal: AbortSignal,
  ): Promise<Provable> {
    const data = await this.#root(root, signal)
    const { header, start, end } = await findItem(data, path, signal)
    await checkOwner(gateway, header, await payloadDigest(data.pieces(start, end, signal)))
    return { start, end, contentType: typeTagOf(header.tags), proof: 'owner', data, pieces: piecesOf(data) }
  }

  #root(id: string, signal: AbortSignal): Promise<ProvenData> {
    if (!isId(id)) throw untrue(`${id} is no transaction`)
    return this.#roots.of(id, (shared) => ProvenData.of(this.gateways, id, shared), signal)
  }
}

function piecesOf(data: ProvenData): Provable['pieces'] {
  return (from, to, signal) => data.pieces(from, to, signal)
}
