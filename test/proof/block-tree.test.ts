import t from 'tap'
import { parseId } from '../../src/format/id.js'
import { parseTransaction, type Transaction } from '../../src/format/transaction.js'
import {
  type BlockTransaction,
  blockLeaves,
  blockTree,
  validateTxPath,
  weaveSpace,
} from '../../src/proof/block-tree.js'
import { MerkleTree } from '../../src/proof/merkle.js'
import { transactionDataRoot } from '../../src/proof/transaction-proof.js'
import { fixtureJson, fixtureLines, fromBase64url, sound, toBase64url } from '../fixture-file.js'

interface Block {
  readonly height: number
  readonly tx_root: string
  readonly weave_size: string
  readonly block_size: string
  readonly txs: readonly string[]
  readonly leaves: readonly (readonly [dataRoot: string, end: number])[]
  readonly tx_offsets: Readonly<Record<string, { readonly offset: string; readonly size: string }>>
}

const blocks = fixtureJson<Block[]>('tx-roots.json')
const transactions = new Map<string, Transaction>()
for (const json of fixtureLines('transactions.ndjson')) {
  const tx = sound(parseTransaction(json))
  transactions.set(tx.id, tx)
}

for (const block of blocks) {
  const start = Number(block.weave_size) - Number(block.block_size)
  const own = block.txs.flatMap((id) => transactions.get(id) ?? [])

  t.test(`the leaves of block ${block.height} have its tx_root`, async (t) => {
    const leaves = block.leaves.map(([root, end]) => ({ hash: fromBase64url(root), end }))
    t.equal(toBase64url(new MerkleTree(leaves).root), block.tx_root)
  })

  if (own.length !== block.txs.length) continue
  t.test(`the transactions of block ${block.height} have its tx_root, and lie where nodes say`, async (t) => {
    const leaves = blockLeaves(
      own.map((tx) => ({ ...tx, dataRoot: transactionDataRoot(tx) })),
      false,
    )
    const tree = sound(blockTree(leaves))
    t.equal(toBase64url(tree.root), block.tx_root)
    for (const [i, leaf] of leaves.entries()) {
      const offset = block.tx_offsets[leaf.id ?? '']
      if (offset !== undefined) t.equal(start + leaf.end, Number(offset.offset), `end of ${leaf.id}`)
      if (leaf.end === leaf.start) continue
      const question = { txRoot: tree.root, offset: leaf.end - 1, blockSize: Number(block.block_size) }
      const proven = sound(validateTxPath({ ...question, path: tree.path(i) }))
      t.match(proven, { start: leaf.start, end: leaf.end })
      t.same(proven.dataHash, leaf.hash)
    }
  })
}

t.test('at least two blocks were rebuilt from their transactions', async (t) => {
  t.ok(blocks.filter((block) => block.txs.every((id) => transactions.has(id))).length >= 2)
})

const id = (n: number) => sound(parseId(toBase64url(Buffer.alloc(32, n))))
const tx = (n: number, format: 1 | 2, dataSize: number): BlockTransaction => ({
  id: id(n),
  format,
  dataRoot: dataSize === 0 ? new Uint8Array(0) : Buffer.alloc(32, n),
  dataSize,
})
const K = 262_144

t.test('format 1 comes first, then the bytes of the id decide', async (t) => {
  const leaves = blockLeaves([tx(200, 2, K), tx(90, 2, K), tx(250, 1, K), tx(100, 2, 0)], true)
  t.strictSame(
    leaves.map((leaf) => [leaf.id, leaf.start, leaf.end]),
    [
      [id(250), 0, K],
      [id(90), K, 2 * K],
      [id(100), 2 * K, 2 * K],
      [id(200), 2 * K, 3 * K],
    ],
  )
})

t.test('data that does not fill its last 256 KiB is followed by a leaf of padding', async (t) => {
  const leaves = blockLeaves([tx(1, 2, 10), tx(2, 2, K + 1), tx(3, 2, 2 * K)], true)
  t.strictSame(
    leaves.map((leaf) => [leaf.id, leaf.start, leaf.end, leaf.hash.length]),
    [
      [id(1), 0, 10, 32],
      [undefined, 10, K, 0],
      [id(2), K, 2 * K + 1, 32],
      [undefined, 2 * K + 1, 3 * K, 0],
      [id(3), 3 * K, 5 * K, 32],
    ],
  )
  const tree = sound(blockTree(leaves))
  for (const [i, leaf] of leaves.entries()) {
    if (leaf.id === undefined) continue
    const question = { txRoot: tree.root, offset: leaf.start, blockSize: 5 * K, path: tree.path(i) }
    t.match(validateTxPath(question), { start: leaf.start, end: leaf.end })
  }
  t.match(validateTxPath({ txRoot: tree.root, offset: 10, blockSize: 5 * K, path: tree.path(1) }), {
    refused: 'forged',
  })
})

t.test('an empty block has no tree, and space is counted in whole chunks where it is padded', async (t) => {
  t.equal(blockTree(blockLeaves([], true)), undefined)
  t.strictSame(
    [0, 1, K, K + 1].map((size) => weaveSpace(size, true)),
    [0, K, K, 2 * K],
  )
  t.equal(weaveSpace(5, false), 5)
})
