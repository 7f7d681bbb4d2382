import { type BlockHeader, packBlockHeader } from '../catalog/block-header.js'
import { type Id, parseId } from '../format/id.js'
import { parsedJson } from '../format/json.js'
import {
  type Block,
  type BlockHash,
  type NodeInfo,
  parseBlockHash,
  type TransactionOffset,
  type TransactionStatus,
} from './chain.js'
import { blockHeightOf, bytesOf, decimalIn, type Fields, fieldsOf, wholeOf } from './json-fields.js'

/** Parsers for the JSON answers of nodes; undefined where an answer does not have the expected shape. */

const chunkMax = 262_144
/** Nodes refuse longer proofs (MAX_PATH_SIZE). */
const pathMax = 262_144
/** The genesis block carries 314; later blocks at most 1000. */
const blockTransactionsMax = 10_000

/** `GET /info`. */
export function readInfo(text: string): NodeInfo | undefined {
  const fields = fieldsOf(text)
  if (fields === undefined) return undefined
  const height = blockHeightOf(fields.height)
  const current = hashOf(fields.current)
  const { network } = fields
  if (typeof network !== 'string' || height === undefined || current === undefined) return undefined
  return {
    network,
    height,
    current,
    blocks: wholeOf(fields.blocks) ?? height + 1,
    peers: wholeOf(fields.peers) ?? 0,
  }
}

/** `GET /block/...`. */
export function readBlock(text: string): Block | undefined {
  const fields = fieldsOf(text)
  if (fields === undefined) return undefined
  const hash = hashOf(fields.indep_hash)
  const height = blockHeightOf(fields.height)
  const timestamp = wholeOf(fields.timestamp)
  const weaveSize = wholeOf(fields.weave_size)
  const blockSize = wholeOf(fields.block_size)
  const transactionIds = idsOf(fields.txs)
  if (hash === undefined || height === undefined || timestamp === undefined) return undefined
  if (weaveSize === undefined || blockSize === undefined || transactionIds === undefined) return undefined
  if (blockSize > weaveSize) return undefined
  const previous = hashOf(fields.previous_block)
  if (previous === undefined && (height > 0 || fields.previous_block !== '')) return undefined
  const txRoot =
    fields.tx_root === '' || fields.tx_root === undefined ? null : bytesOf(fields.tx_root, 32, 32)
  if (txRoot === undefined) return undefined
  return {
    hash,
    height,
    timestamp,
    transactionIds,
    weaveSize,
    blockSize,
    header: packBlockHeader(headerOf(text, fields)),
    ...(previous === undefined ? {} : { previous }),
    ...(txRoot === null ? {} : { txRoot }),
  }
}

/** No field of a header is longer. */
const headerFieldMax = 1024

/** The other fields of the block's header; a field of a wrong shape is left out. */
function headerOf(text: string, fields: Fields): BlockHeader {
  const blob = (name: string): Uint8Array | undefined => bytesOf(fields[name], 0, headerFieldMax)
  const number = (name: string): string | undefined => decimalIn(text, fields, name)
  const rate = (name: string): [string, string] | undefined => {
    const value = fields[name]
    const [dividend, divisor] = Array.isArray(value) ? value.map(wholeOf) : []
    return dividend === undefined || divisor === undefined ? undefined : [String(dividend), String(divisor)]
  }
  const header = {
    nonce: blob('nonce'),
    hash: blob('hash'),
    blockSize: number('block_size'),
    difficulty: number('diff'),
    cumulativeDifficulty: number('cumulative_diff'),
    lastRetarget: number('last_retarget'),
    rewardAddress: blob('reward_addr'),
    rewardPool: number('reward_pool'),
    rate: rate('usd_to_ar_rate'),
    scheduledRate: rate('scheduled_usd_to_ar_rate'),
    hashListMerkle: blob('hash_list_merkle'),
    walletList: blob('wallet_list'),
    txRoot: blob('tx_root'),
  }
  return Object.fromEntries(Object.entries(header).filter(([, value]) => value !== undefined))
}

const pendingMax = 100_000

/** `GET /tx/pending`: the ids that are ids, the first 100,000. */
export function readPending(text: string): readonly Id[] | undefined {
  const ids = parsedJson(text, { values: 4 * pendingMax })
  if (!Array.isArray(ids)) return undefined
  return ids
    .slice(0, pendingMax)
    .map((id: unknown) => (typeof id === 'string' ? parseId(id) : undefined))
    .filter((id) => id !== undefined)
}

/** `GET /tx/{id}/status` of a mined transaction. */
export function readStatus(text: string): TransactionStatus | undefined {
  const fields = fieldsOf(text)
  if (fields === undefined) return undefined
  const height = blockHeightOf(fields.block_height)
  const block = hashOf(fields.block_indep_hash)
  const confirmations = wholeOf(fields.number_of_confirmations)
  if (height === undefined || block === undefined || confirmations === undefined) return undefined
  return { kind: 'mined', height, block, confirmations }
}

/** `GET /tx/{id}/offset`: `offset` is the 1-based weave position of the last byte. */
export function readOffset(text: string): TransactionOffset | undefined {
  const fields = fieldsOf(text)
  if (fields === undefined) return undefined
  const size = wholeOf(fields.size)
  const end = wholeOf(fields.offset)
  if (size === undefined || end === undefined || size === 0 || size > end) return undefined
  return { size, end, start: end - size + 1 }
}

/** The parts of a `GET /chunk/{offset}` answer. */
export interface ChunkParts {
  readonly chunk: Uint8Array
  readonly dataPath: Uint8Array
  readonly txPath?: Uint8Array
}

/** `GET /chunk/{offset}`: an unpacked chunk. A path is branches of 96 or 128 bytes and a leaf of 64. */
export function readChunk(text: string): ChunkParts | undefined {
  const fields = fieldsOf(text)
  if (fields === undefined) return undefined
  if (fields.packing !== undefined && fields.packing !== 'unpacked') return undefined
  const chunk = bytesOf(fields.chunk, 1, chunkMax)
  const dataPath = bytesOf(fields.data_path, 64, pathMax)
  if (chunk === undefined || dataPath === undefined || !isPath(dataPath)) return undefined
  if (fields.tx_path === undefined || fields.tx_path === '') return { chunk, dataPath }
  const txPath = bytesOf(fields.tx_path, 64, pathMax)
  return txPath === undefined || !isPath(txPath) ? undefined : { chunk, dataPath, txPath }
}

function isPath(path: Uint8Array): boolean {
  return path.length % 32 === 0
}

/** A plain-text answer that is one block hash: `GET /tx_anchor`. */
export function readAnchor(text: string): BlockHash | undefined {
  return parseBlockHash(text.trim())
}

function hashOf(value: unknown): BlockHash | undefined {
  return typeof value === 'string' ? parseBlockHash(value) : undefined
}

function idsOf(value: unknown): Id[] | undefined {
  if (!Array.isArray(value) || value.length > blockTransactionsMax) return undefined
  const ids = value.map((text: unknown) => (typeof text === 'string' ? parseId(text) : undefined))
  const sound = ids.filter((id) => id !== undefined)
  return sound.length === ids.length && new Set(sound).size === sound.length ? sound : undefined
}
