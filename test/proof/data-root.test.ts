import { deepEqual, equal } from 'node:assert/strict'
import { generateTransactionChunks, validatePath as libraryValidatePath } from 'arweave/node/lib/merkle.js'
import t from 'tap'
import { chunkSizeMax } from '../../src/format/chunk.js'
import { isRefusal } from '../../src/format/refusal.js'
import { DataRootHasher, dataTree, inlineDataTree } from '../../src/proof/data-root.js'
import { MerkleTree } from '../../src/proof/merkle.js'
import { validatePath } from '../../src/proof/path.js'
import { fixtureJson, sound, toBase64url, toHex } from '../fixture-file.js'
import { fc } from '../property.js'

interface Vector {
  readonly root: string
  readonly chunks: readonly number[]
  readonly proofLens: readonly number[]
  readonly offsets: readonly number[]
}
const vectors = Object.entries(fixtureJson<Record<string, Vector>>('vectors.json'))
  .filter(([name]) => name.startsWith('merkle_'))
  .map(([name, vector]) => [Number(name.slice('merkle_'.length)), vector] as const)

const dataOf = (size: number) => Uint8Array.from({ length: size }, (_, i) => i % 251)

for (const [size, vector] of vectors) {
  t.test(`${size} bytes have the root and the proofs that an independent library gives`, async (t) => {
    const tree = dataTree(dataOf(size))
    t.equal(toBase64url(tree.root), vector.root)
    t.strictSame(
      tree
        .paths()
        .map((path) => path.length)
        .slice(0, vector.proofLens.length),
      vector.proofLens,
    )
    t.strictSame(tree.leaves.map((leaf) => leaf.end - 1).slice(0, vector.offsets.length), vector.offsets)
  })
}

t.test('pieces of any length give the root of the whole', async (t) => {
  const size = fc.oneof(fc.nat(2000), fc.integer({ min: chunkSizeMax - 2, max: 2 * chunkSizeMax + 2 }))
  const cuts = fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 10 })
  fc.assert(
    fc.property(size, cuts, (length, sizes) => {
      const data = dataOf(length)
      const hasher = new DataRootHasher(length)
      for (let at = 0, i = 0; at < length; i++) {
        const next = at + (sizes[i % sizes.length] ?? 1)
        hasher.update(data.subarray(at, next))
        at = next
      }
      const tree = sound(hasher.finish())
      const whole = dataTree(data)
      equal(toHex(tree.root), toHex(whole.root))
      deepEqual(
        tree.leaves.map((leaf) => leaf.end),
        whole.leaves.map((leaf) => leaf.end),
      )
    }),
    { numRuns: 60 },
  )
  t.pass('held for every sample')
})

t.test('many chunks at once give the root of each by itself', async (t) => {
  const data = new Uint8Array(5 * chunkSizeMax + 3).map((_, at) => Math.imul(at + 1, 2_654_435_761) >>> 24)
  const wrong: [number, number][] = []
  for (const over of [-3 * chunkSizeMax, -chunkSizeMax - 1, -chunkSizeMax, -3, -2, 0, 1000, 40_000]) {
    const size = 4 * chunkSizeMax + over
    const { root } = dataTree(data.subarray(0, size))
    for (const step of [1, 2, 3, 5]
      .map((chunks) => chunks * chunkSizeMax)
      .concat(chunkSizeMax - 1, 700_001)) {
      const hasher = new DataRootHasher(size)
      for (let at = 0; at < size; at += step) hasher.update(data.subarray(at, Math.min(at + step, size)))
      const tree = hasher.finish()
      if (isRefusal(tree) || !Buffer.from(tree.root).equals(root)) wrong.push([over, step])
    }
  }
  t.same(wrong, [])
})

t.test('a payload that is shorter or longer than announced is refused', async (t) => {
  const hasher = new DataRootHasher(10)
  hasher.update(new Uint8Array(9))
  t.match(hasher.finish(), { refused: 'forged', message: /9 bytes came, not 10/ })
  const other = new DataRootHasher(10)
  other.update(new Uint8Array(400_000))
  t.match(other.finish(), { refused: 'forged', message: /400000 bytes came, not 10/ })
})

t.test("paths are those of an independent library, and each side accepts the other's", async (t) => {
  for (const size of [1, 300_000, 1_000_000, 5 * chunkSizeMax]) {
    const data = dataOf(size)
    const theirs = await generateTransactionChunks(data)
    const ours = dataTree(data)
    t.equal(toHex(ours.root), toHex(theirs.data_root))
    for (const [i, proof] of theirs.proofs.entries()) {
      t.equal(toHex(ours.path(i)), toHex(proof.proof))
      const path = Buffer.from(ours.path(i))
      const accepted = await libraryValidatePath(Buffer.from(ours.root), proof.offset, 0, size, path)
      const start = ours.leaves[i - 1]?.end ?? 0
      t.match(accepted, { leftBound: start, rightBound: ours.leaves[i]?.end })
      for (const ruleset of ['basic', 'borders', 'strict', 'rebase'] as const) {
        const leaf = validatePath({ root: ours.root, target: proof.offset, size, path, ruleset })
        t.match(leaf, { start, end: ours.leaves[i]?.end })
      }
    }
  }
})

t.test('data inside a format-1 transaction is cut without balancing', async (t) => {
  const ends = inlineDataTree(dataOf(chunkSizeMax + 1)).leaves.map((leaf) => leaf.end)
  t.strictSame(ends, [chunkSizeMax, chunkSizeMax + 1])
  t.equal(toHex(inlineDataTree(dataOf(chunkSizeMax)).root), toHex(dataTree(dataOf(chunkSizeMax)).root))
  t.equal(toHex(inlineDataTree(dataOf(0)).root), toHex(dataTree(dataOf(0)).root))
})

t.test('a tree needs a leaf, and has no path to one it has not', async (t) => {
  t.throws(() => new MerkleTree([]), RangeError)
  t.throws(() => dataTree(dataOf(3)).path(1), RangeError)
  t.notOk(isRefusal(dataTree(dataOf(3)).path(0)))
})
