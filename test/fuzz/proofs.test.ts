import { equal, ok } from 'node:assert/strict'
import t from 'tap'
import { signatureTypes } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { parseTransactionText } from '../../src/format/transaction.js'
import { dataTree } from '../../src/proof/data-root.js'
import { verifyItem } from '../../src/proof/item-verifier.js'
import { branchId, noteBytes } from '../../src/proof/merkle.js'
import { proveChunk, type Ruleset, validatePath } from '../../src/proof/path.js'
import { verifySignature } from '../../src/proof/signature-verifiers.js'
import { verifyTransaction } from '../../src/proof/transaction-proof.js'
import { fixture, fixtureJson, fixtureLines, fixtureNames, fromBase64url, fromHex } from '../fixture-file.js'
import { fc } from '../property.js'
import { mutated, mutatedText } from './mutate.js'

const K = 262_144
const rulesets: readonly Ruleset[] = ['basic', 'borders', 'strict', 'rebase']

t.test('a path that was changed in any way proves nothing, and throws nothing', async (t) => {
  const data = Buffer.alloc(4 * K + 1000, 7)
  const tree = dataTree(data)
  const rebased = branchId(tree.root, tree.root, noteBytes(5 * K))
  const nested = Buffer.concat([Buffer.alloc(32), tree.root, tree.root, noteBytes(5 * K), tree.path(1)])
  const cases = [
    { root: tree.root, size: data.length, paths: tree.paths() },
    { root: rebased, size: 5 * K + data.length, paths: [nested] },
  ]
  for (const { root, size, paths } of cases) {
    fc.assert(
      fc.property(mutated(paths), fc.nat(size), fc.constantFrom(...rulesets), (path, target, ruleset) => {
        const answer = validatePath({ root, target, size, path, ruleset })
        if (isRefusal(answer)) return
        ok(
          paths.some((each) => Buffer.compare(each, path) === 0),
          'only the path itself is accepted',
        )
        ok(answer.start <= target && target < answer.end)
      }),
      { numRuns: 4000 },
    )
  }
  t.pass('held for every sample')
})

t.test('a chunk that was changed in any way is not proven', async (t) => {
  const data = Buffer.alloc(3000, 7)
  const tree = dataTree(data)
  fc.assert(
    fc.property(mutated([data]), (chunk) => {
      const proof = { chunk, dataPath: tree.path(0), dataRoot: tree.root, dataSize: data.length, offset: 0 }
      equal(isRefusal(proveChunk({ ...proof, ruleset: 'strict' })), Buffer.compare(chunk, data) !== 0)
    }),
    { numRuns: 2000 },
  )
  t.pass('held for every sample')
})

const items = fixtureNames('items')
  .filter((name) => !name.startsWith('invalid'))
  .map((name) => fixture(`items/${name}`))
  .filter((bytes) => bytes.length < 3000)

/** The same item with 0 where its flags of target and anchor say nothing: any other value than 1 says that there is none. */
function withPlainFlags(item: Uint8Array): Buffer {
  const plain = Buffer.from(item)
  const { signatureSize = 0, ownerSize = 0 } = signatureTypes.get(plain.readUInt16LE()) ?? {}
  const target = 2 + signatureSize + ownerSize
  if (plain[target] !== 1) plain[target] = 0
  const anchor = target + (plain[target] === 1 ? 33 : 1)
  if (plain[anchor] !== 1) plain[anchor] = 0
  return plain
}

t.test("an item that was changed in any way is not taken for the owner's, and nothing throws", async (t) => {
  fc.assert(
    fc.property(mutated(items), (bytes) => {
      const answer = verifyItem(bytes)
      if (isRefusal(answer)) return
      const same = items.some((each) => Buffer.compare(each, withPlainFlags(bytes)) === 0)
      // Of an Ethereum signature the recovery byte is not looked at; it changes the id.
      ok(same || answer.signatureType === 3, `an item of type ${answer.signatureType} with other bytes`)
    }),
    { numRuns: 1500 },
  )
  t.pass('held for every sample')
})

const transactions = fixtureLines<{ data: string }>('transactions.ndjson')
  .filter((json) => json.data.length < 5000)
  .slice(0, 20)
  .map((json) => JSON.stringify(json))

t.test('a transaction that was changed is refused or says the same', async (t) => {
  fc.assert(
    fc.property(mutatedText(transactions), (text) => {
      const tx = parseTransactionText(text)
      if (isRefusal(tx)) return
      const answer = verifyTransaction(tx)
      ok(answer === true || isRefusal(answer))
    }),
    { numRuns: 1500 },
  )
  t.pass('held for every sample')
})

interface Vector {
  readonly sigType: number
  readonly owner_b64url: string
  readonly signMsg: string
  readonly signature: string
}
const vectors = Object.values(fixtureJson<Record<string, Vector>>('vectors.json')).filter(
  (each) => each.signMsg,
)

t.test('random owners and signatures never throw, whatever the type', async (t) => {
  const type = fc.constantFrom(...signatureTypes.values())
  fc.assert(
    fc.property(
      type,
      fc.infiniteStream(fc.oneof(fc.constant(0), fc.constant(255), fc.nat(255))),
      (each, noise) => {
        const take = (size: number) => Uint8Array.from({ length: size }, () => noise.next().value as number)
        const owner = take(each.ownerSize)
        if (each.type === 6) owner[1024] = 1
        const answer = verifySignature(each.type, {
          owner,
          message: take(48),
          signature: take(each.signatureSize),
        })
        ok(answer === false || isRefusal(answer))
      },
    ),
    { numRuns: 300 },
  )
  fc.assert(
    fc.property(fc.constantFrom(...vectors), fc.nat(200), fc.nat(7), (vector, at, bit) => {
      const bytes = Buffer.concat([fromBase64url(vector.owner_b64url), fromHex(vector.signature)])
      bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ (1 << bit)
      const split = bytes.length - vector.signature.length / 2
      const signed = {
        owner: bytes.subarray(0, split),
        message: fromHex(vector.signMsg),
        signature: bytes.subarray(split),
      }
      const answer = verifySignature(vector.sigType, signed)
      ok(typeof answer === 'boolean' || isRefusal(answer))
    }),
    { numRuns: 300 },
  )
  t.pass('held for every sample')
})
