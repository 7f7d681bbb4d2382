import { equal, ok } from 'node:assert/strict'
import t from 'tap'
import { chunkSizeMax } from '../../src/format/chunk.js'
import { isRefusal } from '../../src/format/refusal.js'
import { dataTree } from '../../src/proof/data-root.js'
import { sha256 } from '../../src/proof/digest.js'
import { branchId, type Leaf, leafId, MerkleTree, noteBytes } from '../../src/proof/merkle.js'
import { type PathQuestion, proveChunk, type Ruleset, rulesetAt, validatePath } from '../../src/proof/path.js'
import { fixtureJson, fromBase64url, sound, toBase64url } from '../fixture-file.js'
import { fc } from '../property.js'

const K = chunkSizeMax

/** The root that a real path leads up to: the id of its first branch, or of its leaf. */
function rootOf(path: Uint8Array): Uint8Array {
  const part = (from: number) => path.subarray(from, from + 32)
  return path.length === 64 ? leafId(part(0), part(32)) : branchId(part(0), part(32), part(64))
}

interface Served {
  readonly chunk: string
  readonly data_path: string
  readonly tx_path: string
}

const served = [
  // The first byte of a transaction of 256000 bytes, under the strict rules; it ends at 160688128 in its block.
  {
    file: 'replay/chunks/51530681327863.json',
    offset: 51_530_681_327_863,
    txEnd: 160_688_128,
    size: 256_000,
    at: 0,
  },
  // A first chunk, under the rules for rebased subtrees.
  {
    file: 'chunks/351531360100599.json',
    offset: 351_531_360_100_599,
    txEnd: 312_296_224,
    size: 11_879_200,
    at: 0,
  },
]

for (const { file, offset, txEnd, size, at } of served) {
  t.test(`the real chunk at ${offset} proves under the rules of its offset`, async (t) => {
    const json = fixtureJson<Served>(file)
    const [chunk, dataPath, txPath] = [json.chunk, json.data_path, json.tx_path].map(fromBase64url) as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ]
    const tx = sound(
      validatePath({
        root: rootOf(txPath),
        target: txEnd - 1,
        size: 2 ** 40,
        path: txPath,
        ruleset: 'basic',
      }),
    )
    t.equal(tx.end, txEnd)
    t.equal(tx.end - tx.start, size)
    const proof = {
      chunk,
      dataPath,
      dataRoot: tx.dataHash,
      dataSize: size,
      offset: at,
      ruleset: rulesetAt(offset),
    }
    t.strictSame(proveChunk(proof), { start: at, end: at + chunk.length })
    const wrong = Uint8Array.from(chunk)
    wrong[100] = (wrong[100] ?? 0) ^ 1
    t.match(proveChunk({ ...proof, chunk: wrong }), {
      refused: 'forged',
      message: /does not hash to its leaf/,
    })
    t.match(proveChunk({ ...proof, chunk: chunk.subarray(1) }), { refused: 'forged', message: /bytes, not/ })
    t.match(proveChunk({ ...proof, offset: size }), { refused: 'forged', message: /not inside/ })
    t.match(proveChunk({ ...proof, dataRoot: sha256(chunk) }), { refused: 'forged' })
  })
}

t.test('a real proof of access proves transaction, place and chunk', async (t) => {
  const json = fixtureJson<Served & { data_root: string; tx_end_in_block: string; chunk_end_in_tx: string }>(
    'chunks/proof-of-access-422250.json',
  )
  const txPath = fromBase64url(json.tx_path)
  const target = Number(json.tx_end_in_block) - 1
  const tx = sound(
    validatePath({ root: rootOf(txPath), target, size: 2 ** 40, path: txPath, ruleset: 'basic' }),
  )
  t.equal(toBase64url(tx.dataHash), json.data_root)
  const end = Number(json.chunk_end_in_tx)
  const proof = {
    chunk: fromBase64url(json.chunk),
    dataPath: fromBase64url(json.data_path),
    dataRoot: tx.dataHash,
  }
  const question = { ...proof, dataSize: tx.end - tx.start, offset: end - 1 }
  t.strictSame(proveChunk({ ...question, ruleset: rulesetAt(407_672_420_044) }), {
    start: end - proof.chunk.length,
    end,
  })
})

t.test('the rules change behind two offsets of the weave', async (t) => {
  const table: [number, Ruleset][] = [
    [1, 'borders'],
    [30_607_159_107_830, 'borders'],
    [30_607_159_107_831, 'strict'],
    [151_066_495_197_430, 'strict'],
    [151_066_495_197_431, 'rebase'],
  ]
  for (const [offset, ruleset] of table) t.equal(rulesetAt(offset), ruleset)
})

/** Leaves of the given sizes, each a hash of its number. */
function leavesOf(sizes: readonly number[]): Leaf[] {
  let end = 0
  return sizes.map((size, i) => {
    end += size
    return { hash: sha256(Buffer.from([i])), end }
  })
}

/** For each ruleset, the numbers of the leaves it accepts, asked for each leaf's first byte. */
function accepted(sizes: readonly number[], ruleset: Ruleset): number[] {
  const tree = new MerkleTree(leavesOf(sizes))
  const size = tree.leaves.at(-1)?.end ?? 0
  return sizes.flatMap((_, i) => {
    const target = tree.leaves[i - 1]?.end ?? 0
    const answer = validatePath({ root: tree.root, target, size, path: tree.path(i), ruleset })
    return isRefusal(answer) ? [] : [i]
  })
}

t.test('chunks off the 256 KiB grid are only taken under the basic rules', async (t) => {
  const cases: [sizes: number[], strict: number[], rebase: number[]][] = [
    [
      [K, K, K],
      [0, 1, 2],
      [0, 1, 2],
    ],
    [
      [K, K, 1],
      [0, 1, 2],
      [0, 1, 2],
    ],
    [[100], [0], [0]],
    [
      [K, K / 2 + 1, K / 2],
      [0, 1, 2],
      [0, 1, 2],
    ],
    // Two halves that fill a bucket exactly: the last ends on the grid but does not start on it.
    [[K / 2, K / 2], [], [0]],
    // A small first chunk passes for the second last of all; the last reaches from bucket to bucket.
    [[100, K], [0], [0, 1]],
    [[100, 100, 100], [], [0]],
    [[K, 100, K, K], [0], [0, 1, 3]],
    [[K + 1, K], [], [1]],
    [[K + 1, K - 1], [], []],
  ]
  for (const [sizes, strict, rebase] of cases) {
    const all = sizes.map((_, i) => i)
    t.strictSame(accepted(sizes, 'basic'), all, `${sizes} basic`)
    t.strictSame(
      accepted(sizes, 'borders'),
      all.filter((i) => (sizes[i] ?? 0) <= K),
      `${sizes} borders`,
    )
    t.strictSame(accepted(sizes, 'strict'), strict, `${sizes} strict`)
    t.strictSame(accepted(sizes, 'rebase'), rebase, `${sizes} rebase`)
  }
})

t.test(
  'a subtree whose offsets start again at 0 is followed only under the rules that know it',
  async (t) => {
    const left = dataTree(Buffer.alloc(2 * K - 100_000, 1))
    const right = dataTree(Buffer.alloc(K + 40_000, 2))
    const boundary = 2 * K
    const note = noteBytes(boundary)
    const root = branchId(left.root, right.root, note)
    const size = boundary + K + 40_000
    const head = Buffer.concat([Buffer.alloc(32), left.root, right.root, note])
    const ask = (target: number, tree: MerkleTree, leaf: number, ruleset: Ruleset = 'rebase') =>
      validatePath({ root, target, size, path: Buffer.concat([head, tree.path(leaf)]), ruleset })
    t.match(ask(0, left, 0), { start: 0, end: K })
    t.match(ask(K, left, 1), { start: K, end: 2 * K - 100_000 })
    t.match(ask(boundary, right, 0), { start: boundary, end: boundary + K })
    t.match(ask(size - 1, right, 1), { start: boundary + K, end: size })
    t.match(ask(boundary, right, 0, 'strict'), { refused: 'forged' })
    t.match(ask(boundary, right, 0, 'basic'), { refused: 'forged' })
    t.match(ask(boundary, left, 0), { refused: 'forged' }, 'the other side of the branch')
  },
)

t.test('subtrees may lie inside each other', async (t) => {
  const trees = [1, 2, 3].map((n) => dataTree(Buffer.alloc(K, n)))
  const [a, b, c] = trees as [MerkleTree, MerkleTree, MerkleTree]
  const inner = branchId(b.root, c.root, noteBytes(K))
  const root = branchId(a.root, inner, noteBytes(K))
  const zero = Buffer.alloc(32)
  const outer = Buffer.concat([zero, a.root, inner, noteBytes(K)])
  const path = Buffer.concat([outer, zero, b.root, c.root, noteBytes(K), c.path(0)])
  const question: PathQuestion = { root, target: 2 * K + 5, size: 3 * K, path, ruleset: 'rebase' }
  t.match(validatePath(question), { start: 2 * K, end: 3 * K })
})

t.test('no change of a path, a root or a length is taken for the same proof', async (t) => {
  const tree = dataTree(Buffer.alloc(5 * K + 77, 9))
  const size = 5 * K + 77
  const index = fc.nat(tree.leaves.length - 1)
  fc.assert(
    fc.property(index, fc.nat(), fc.integer({ min: 1, max: 255 }), fc.boolean(), (i, at, flip, inRoot) => {
      const path = Buffer.from(tree.path(i))
      const root = Buffer.from(tree.root)
      const target = tree.leaves[i - 1]?.end ?? 0
      const where = inRoot ? root : path
      where[at % where.length] = (where[at % where.length] ?? 0) ^ flip
      ok(isRefusal(validatePath({ root, target, size, path, ruleset: 'basic' })))
    }),
  )
  fc.assert(
    fc.property(index, fc.nat(700), (i, length) => {
      const path = Buffer.concat([tree.path(i), Buffer.alloc(100)]).subarray(0, length)
      const whole = length === tree.path(i).length
      const target = tree.leaves[i - 1]?.end ?? 0
      equal(isRefusal(validatePath({ root: tree.root, target, size, path, ruleset: 'basic' })), !whole)
    }),
  )
  t.pass('held for every sample')
})

t.test('every byte of the data leads to the leaf that holds it', async (t) => {
  const size = 3 * K + 1000
  const tree = dataTree(Buffer.alloc(size, 4))
  fc.assert(
    fc.property(fc.nat(size - 1), (target) => {
      const i = tree.leaves.findIndex((leaf) => target < leaf.end)
      for (const [j] of tree.leaves.entries()) {
        const answer = validatePath({ root: tree.root, target, size, path: tree.path(j), ruleset: 'strict' })
        equal(isRefusal(answer), j !== i)
      }
    }),
  )
  t.pass('held for every sample')
})

t.test('no chunk is larger than 256 KiB, under any rules', async (t) => {
  const chunk = Buffer.alloc(K + 1, 1)
  const tree = new MerkleTree([{ hash: sha256(chunk), end: chunk.length }])
  const proof = { chunk, dataPath: tree.path(0), dataRoot: tree.root, dataSize: chunk.length, offset: 0 }
  t.match(proveChunk({ ...proof, ruleset: 'basic' }), {
    refused: 'forged',
    message: /a chunk of 262145 bytes/,
  })
})

t.test('invalid questions are refused, not answered', async (t) => {
  const tree = dataTree(Buffer.alloc(10))
  const question: PathQuestion = {
    root: tree.root,
    target: 0,
    size: 10,
    path: tree.path(0),
    ruleset: 'basic',
  }
  t.match(validatePath(question), { start: 0, end: 10 })
  for (const target of [-1, 10, Number.NaN]) t.ok(isRefusal(validatePath({ ...question, target })))
  t.ok(isRefusal(validatePath({ ...question, size: 0 })))
  t.match(validatePath({ ...question, path: new Uint8Array(K + 1) }), { message: /longer than/ })
  t.ok(isRefusal(validatePath({ ...question, path: new Uint8Array(0) })))
})

t.test('a leaf proves bytes that it covers, and none behind its end', async (t) => {
  const chunk = Buffer.alloc(1000, 7)
  const note = noteBytes(chunk.length)
  const dataPath = Buffer.concat([sha256(chunk), note])
  const dataRoot = leafId(sha256(chunk), note)
  const proof = { chunk, dataPath, dataRoot, dataSize: 200_000 }
  for (const ruleset of ['basic', 'anywhere'] as const) {
    t.strictSame(proveChunk({ ...proof, offset: 999, ruleset }), { start: 0, end: 1000 })
    for (const offset of [1000, 150_000, 199_999])
      t.match(proveChunk({ ...proof, offset, ruleset }), { refused: 'forged' }, `${ruleset} ${offset}`)
  }
})
