import { writeBinaryChunk } from '../chain/binary-chunk.js'
import { readChunk } from '../chain/node-answers.js'
import { parseId } from '../format/id.js'
import type { BaseLayer, NodeRecord } from './base-layer.js'
import { base64urlPieces, jsonReply, type NodeReply, notFound, textReply } from './node-reply.js'

/** Nodes give data in one answer up to this size. */
const servedMax = 12 << 20

const hashShape = /^[A-Za-z0-9_-]{64}$/

const fields = new Set([
  'format',
  'id',
  'last_tx',
  'owner',
  'tags',
  'target',
  'quantity',
  'data_size',
  'data_root',
  'reward',
  'signature',
])

type Route = (layer: BaseLayer, rest: readonly string[]) => NodeReply | undefined

/** First path segment to what answers below it, as nodes do (docs.arweave.org/developers, HTTP API). */
const routes: Readonly<Record<string, Route>> = {
  '': (layer) => jsonReply(layer.info()),
  info: (layer, rest) => (rest.length === 0 ? jsonReply(layer.info()) : undefined),
  height: (layer, rest) => (rest.length === 0 ? textReply(String(layer.height())) : undefined),
  peers: (_layer, rest) => (rest.length === 0 ? jsonReply([]) : undefined),
  current_block: (layer, rest) => (rest.length === 0 ? found(layer.blockAt(layer.height())) : undefined),
  block,
  tx: transaction,
  unconfirmed_tx: unconfirmed,
  chunk,
  chunk2,
  tx_anchor: (layer, rest) => (rest.length === 0 ? textReply(layer.anchor()) : undefined),
  price,
  wallet,
}

/** Answers a GET (or HEAD) of the chain; undefined where no route has this path. */
export function read(layer: BaseLayer, segments: readonly string[]): NodeReply | undefined {
  const route = Object.hasOwn(routes, segments[0] ?? '') ? routes[segments[0] ?? ''] : undefined
  return route?.(layer, segments.slice(1))
}

function found(record: NodeRecord | undefined): NodeReply {
  return record === undefined ? textReply('Block not found.', 404) : jsonReply(record)
}

function block(layer: BaseLayer, [by, name, ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  if (by === 'current' && name === undefined) return found(layer.blockAt(layer.height()))
  if (name === undefined) return undefined
  if (by === 'hash')
    return hashShape.test(name) ? found(layer.blockOf(name)) : textReply('Invalid hash.', 400)
  if (by !== 'height') return undefined
  const height = whole(name)
  return height === undefined ? textReply('Invalid height.', 400) : found(layer.blockAt(height))
}

function transaction(layer: BaseLayer, [name = '', part, ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  if (name === 'pending' && part === undefined) return jsonReply(layer.pending())
  const id = parseId(name)
  if (id === undefined) return textReply('Invalid hash.', 400)
  const record = layer.transaction(id)
  if (record === undefined) return notFound
  const place = layer.place(id)
  if (place === undefined) return textReply('Pending', 202)
  if (part === undefined) return jsonReply(record)
  if (part === 'status') {
    if (place.block === undefined) return notFound
    return jsonReply({
      block_height: place.block.height,
      block_indep_hash: place.block.hash,
      // The transaction's own block counts: 1 at the tip.
      number_of_confirmations: layer.height() - place.block.height + 1,
    })
  }
  if (part === 'offset') {
    if (place.start === undefined || place.end === undefined) return notFound
    return jsonReply({ size: String(place.end - place.start + 1), offset: String(place.end) })
  }
  if (part === 'data') return data(layer, id, record, true)
  if (part.startsWith('data.')) return data(layer, id, record, false)
  if (!fields.has(part)) return jsonReply({ error: 'invalid_field' }, 400)
  const value = record[part]
  return typeof value === 'object' ? jsonReply(value) : textReply(String(value ?? ''))
}

function data(layer: BaseLayer, id: string, record: NodeRecord, encoded: boolean): NodeReply {
  if (Number(record.data_size ?? 0) > servedMax) return jsonReply({ error: 'tx_data_too_big' }, 400)
  const pieces = layer.data(id)
  // As nodes do: a header without its data is no error, the body is empty.
  if (pieces === undefined) return textReply('')
  if (encoded) return { ...textReply(''), body: base64urlPieces(pieces) }
  return { status: 200, type: contentType(record), body: pieces }
}

function contentType(record: NodeRecord): string {
  const tags = Array.isArray(record.tags) ? (record.tags as { name?: unknown; value?: unknown }[]) : []
  const readable = (value: unknown) => Buffer.from(String(value ?? ''), 'base64url').toString('utf8')
  const tag = tags.find(({ name }) => readable(name).toLowerCase() === 'content-type')
  const value = readable(tag?.value)
  return /^[\x21-\x7e][\x20-\x7e]*$/.test(value) ? value : 'text/html'
}

function unconfirmed(layer: BaseLayer, [name = '', ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  const id = parseId(name)
  if (id === undefined) return textReply('Invalid hash.', 400)
  const record = layer.transaction(id)
  return record === undefined ? notFound : jsonReply(record)
}

function chunk(layer: BaseLayer, [name = '', ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  const offset = whole(name)
  if (offset === undefined) return jsonReply({ error: 'invalid_offset' }, 400)
  const record = layer.chunk(offset)
  return record === undefined ? jsonReply({ error: 'chunk_not_found' }, 404) : jsonReply(record)
}

/** The same in binary. */
function chunk2(layer: BaseLayer, [name = '', ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  const offset = whole(name)
  if (offset === undefined) return jsonReply({ error: 'invalid_offset' }, 400)
  const record = layer.chunk(offset)
  const parts = record === undefined ? undefined : readChunk(JSON.stringify(record))
  if (parts === undefined) return { status: 404, type: 'application/octet-stream', body: '' }
  return { status: 200, type: 'application/octet-stream', body: writeBinaryChunk(parts) }
}

function price(layer: BaseLayer, [size = '', target, ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  const sizeBytes = whole(size)
  if (sizeBytes === undefined) return jsonReply({ error: 'size_must_be_an_integer' }, 400)
  if (target !== undefined && parseId(target) === undefined) return textReply('Invalid address.', 400)
  return textReply(layer.price(sizeBytes, target).toString())
}

function wallet(layer: BaseLayer, [name = '', what, ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  const address = parseId(name)
  if (address === undefined) return textReply('Invalid address.', 400)
  if (what === 'balance') return textReply(layer.balance(address).toString())
  return what === 'last_tx' ? textReply(layer.lastTransaction(address)) : undefined
}

/** Decimal text of a whole number below 2^53. */
function whole(word: string): number | undefined {
  const value = /^[0-9]{1,16}$/.test(word) ? Number(word) : -1
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
