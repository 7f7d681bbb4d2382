import { createHash } from 'node:crypto'
import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { parseTransaction, type Transaction, transactionJson } from '../format/transaction.js'
import { dataTree, inlineDataTree } from '../proof/data-root.js'
import type { MerkleTree } from '../proof/merkle.js'
import type { Ruleset } from '../proof/path.js'
import { readPostedChunk } from '../proof/posted-chunk.js'
import { ownerOf, verifyTransaction } from '../proof/transaction-proof.js'
import type { PostReply } from './base-layer.js'
import type { TransactionRow } from './chain-store.js'
import type { ChunkKey, ChunkRow } from './chunk-rows.js'

/** Nodes accept data inside a transaction up to this size. */
const inlineMax = 10 << 20

export interface SoundTransaction {
  readonly id: Id
  readonly row: TransactionRow
  /** The chunks of data that came inside the transaction. */
  readonly pieces: readonly (ChunkRow & { readonly end: number })[]
}

export interface SoundChunk {
  readonly key: ChunkKey
  readonly row: ChunkRow
}

/** Whether what was posted is answered already, because it is not sound. */
export function isVerdict(value: object): value is PostReply {
  return 'status' in value
}

/** Reads a posted transaction and checks id, signature and data root; or returns the answer that a node would give. */
export function soundTransaction(json: unknown): SoundTransaction | PostReply {
  const transaction = parseTransaction(json)
  if (isRefusal(transaction)) return { status: 400, body: `Invalid JSON: ${transaction.message}.` }
  if (transaction.data.length > inlineMax) return failed('Too much data for one transaction; post chunks.')
  if (transaction.denomination > 1) return failed('Nothing was redenominated here.')
  const verified = verifyTransaction(transaction)
  if (verified !== true) return failed(`${verified.message}.`)
  const tree = treeOf(transaction)
  const dataRoot = transaction.format === 1 ? (tree?.root ?? new Uint8Array()) : transaction.dataRoot
  if (transaction.dataSize > 0 && dataRoot.length === 0) return failed('There is no data root.')
  const { quantity, reward, lastTx } = transaction
  return {
    id: transaction.id,
    row: {
      json: { ...transactionJson(transaction, { withData: false }), data_tree: [] },
      format: transaction.format,
      owner: createHash('sha256').update(ownerOf(transaction)).digest('base64url'),
      target: encodeBase64url(transaction.target),
      quantity: quantity.toString(),
      reward: reward.toString(),
      anchor: encodeBase64url(lastTx),
      size: transaction.dataSize,
      dataRoot: transaction.dataSize === 0 ? '' : encodeBase64url(dataRoot),
    },
    pieces: tree === undefined ? [] : piecesOf(transaction.data, tree),
  }
}

function failed(why: string): PostReply {
  return { status: 400, body: `Transaction verification failed. ${why}` }
}

/** The tree over data that came along; undefined without data. */
function treeOf({ format, data }: Transaction): MerkleTree | undefined {
  if (data.length === 0) return undefined
  return format === 1 ? inlineDataTree(data) : dataTree(data)
}

function piecesOf(data: Uint8Array, tree: MerkleTree): SoundTransaction['pieces'] {
  let start = 0
  return tree.leaves.flatMap(({ end }, index) => {
    const chunk = data.subarray(start, end)
    start = end
    // Data that ends on a boundary has an empty last chunk: a leaf without bytes.
    return chunk.length === 0 ? [] : [{ end, chunk, dataPath: tree.path(index) }]
  })
}

/** Reads a posted chunk and proves it by `ruleset` against the data root that it names, or gives a node's answer. */
export function soundChunk(json: unknown, ruleset: Ruleset): SoundChunk | PostReply {
  const posted = readPostedChunk(json, ruleset)
  if (typeof posted === 'string') return { status: 400, body: JSON.stringify({ error: posted }) }
  const { chunk, dataPath, dataRoot, dataSize, end } = posted
  return { key: { root: dataRoot, size: dataSize, end }, row: { chunk, dataPath } }
}
