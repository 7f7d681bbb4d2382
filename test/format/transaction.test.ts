import { deepEqual } from 'node:assert/strict'
import t from 'tap'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import {
  parseTransaction,
  parseTransactionText,
  type Transaction,
  transactionJson,
} from '../../src/format/transaction.js'
import { fixtureJson, fixtureLines, fixtureNames, sound } from '../fixture-file.js'
import { fc } from '../property.js'

type Json = Record<string, unknown>

const real: Json[] = [
  ...fixtureLines<Json>('transactions.ndjson'),
  ...fixtureLines<Json>('genesis.ndjson'),
  ...fixtureNames('transactions')
    .filter((name) => name.endsWith('.json'))
    .map((name) => fixtureJson<Json>(`transactions/${name}`)),
]

t.test(`${real.length} real transactions are read, and written as nodes wrote them`, async (t) => {
  for (const json of real) {
    const written = transactionJson(sound(parseTransaction(json)))
    for (const [name, value] of Object.entries(written)) {
      if (json[name] !== undefined) deepEqual(value, json[name], `${String(json.id)} ${name}`)
    }
  }
  t.equal(real.length, 398 + 60 + 7)
})

const bytes = (...sizes: number[]) =>
  fc.oneof(...sizes.map((size) => fc.uint8Array({ minLength: size, maxLength: size })))
const anyTransaction: fc.Arbitrary<Transaction> = fc.record(
  {
    format: fc.constantFrom<1 | 2>(1, 2),
    id: bytes(32).map(idOfBytes),
    lastTx: bytes(0, 32, 48),
    owner: bytes(512),
    tags: fc.array(fc.record({ name: bytes(0, 5), value: bytes(0, 9) }), { maxLength: 4 }),
    target: bytes(0, 32),
    quantity: fc.bigInt({ min: 0n, max: 2n ** 80n }),
    data: fc.uint8Array({ maxLength: 100 }),
    dataSize: fc.nat(),
    dataRoot: bytes(0, 32),
    reward: fc.bigInt({ min: 0n, max: 2n ** 80n }),
    signature: bytes(512),
    denomination: fc.constantFrom(0, 0, 1),
  },
  { noNullPrototype: true },
)

t.test('a transaction comes back as it was written', async (t) => {
  fc.assert(
    fc.property(anyTransaction, (sample) => {
      const tx = { ...sample, dataSize: sample.data.length > 0 ? sample.data.length : sample.dataSize }
      const text = JSON.stringify(transactionJson(tx))
      const again = sound(parseTransactionText(text))
      deepEqual(transactionJson(again), transactionJson(tx))
      deepEqual(transactionJson(tx, { withData: false }).data, '')
    }),
    { numRuns: 100 },
  )
  t.pass('held for every sample')
})

const sample = fixtureJson<Json>('transactions/----LT69qUmuIeC4qb0MZHlxVp7UxLu_14rEkA_9n6w.json')

t.test('what old and new nodes add or leave out is taken', async (t) => {
  const { format, data_size, data_root, tags, target, ...old } = sample
  const tx = sound(parseTransaction({ ...old, data: 'Z3V5cyE' }))
  t.match(tx, { format: 1, dataSize: 5, tags: [], target: new Uint8Array(0) })
  t.notOk(isRefusal(parseTransaction({ ...sample, data_tree: [], denomination: '0', signature_type: 1 })))
  t.equal(sound(parseTransaction({ ...sample, denomination: 2 })).denomination, 2)
  t.equal(sound(parseTransaction({ ...sample, target: 'AAAA', last_tx: 'AAAA' })).target.length, 3)
})

const refused: readonly (readonly [changes: Json, message: RegExp])[] = [
  [{ id: 'short' }, /id is not/],
  [{ id: undefined }, /id is not/],
  [{ id: '----LT69qUmuIeC4qb0MZHlxVp7UxLu_14rEkA_9n6x' }, /id is not/],
  [{ format: 3 }, /format/],
  [{ format: '2' }, /format/],
  [{ owner: 'a+b/' }, /owner is not base64url/],
  [{ owner: 'abc=' }, /owner is not base64url/],
  [{ owner: 7 }, /owner is not base64url/],
  [{ owner: Buffer.alloc(513).toString('base64url') }, /more than 512/],
  [{ signature: Buffer.alloc(600).toString('base64url') }, /more than 512/],
  [{ last_tx: 'A'.repeat(68) }, /last_tx has 51 bytes, more than 48/],
  [{ target: 'A'.repeat(44) }, /target has 33 bytes, more than 32/],
  [{ data_root: 'A'.repeat(44) }, /data_root has 33 bytes/],
  [{ data_root: 'AAAA' }, /neither 0 nor 32/],
  [{ quantity: 0 }, /quantity/],
  [{ quantity: '-1' }, /quantity/],
  [{ quantity: '01' }, /quantity/],
  [{ quantity: '1e3' }, /quantity/],
  [{ reward: '' }, /reward/],
  [{ reward: '9'.repeat(40) }, /reward/],
  [{ data_size: '9007199254740992' }, /2\^53/],
  [{ data_size: '5', data: 'AAAA' }, /data has 3 bytes/],
  [{ tags: {} }, /tags/],
  [{ tags: [null] }, /tag 0/],
  [{ tags: [{ name: 'QQ' }] }, /tag 0/],
  [{ tags: [{ name: 'QQ', value: 'Q' }] }, /tag 0/],
  [{ tags: Array.from({ length: 5000 }, () => ({ name: '', value: '' })) }, /tags/],
  [{ denomination: 'x' }, /denomination/],
]

for (const [changes, message] of refused) {
  t.test(`${JSON.stringify(changes).slice(0, 60)} is refused`, async (t) => {
    t.match(parseTransaction({ ...sample, ...changes }), { refused: 'malformed', message })
  })
}

t.test('what is no JSON object is refused', async (t) => {
  for (const value of [null, undefined, 1, 'x', [], true]) t.ok(isRefusal(parseTransaction(value)))
  t.match(parseTransactionText('{'), { refused: 'malformed', message: /not JSON/ })
})
