import { deepEqual, equal } from 'node:assert/strict'
import t from 'tap'
import {
  type BareItem,
  type Dictionary,
  type InnerList,
  type Item,
  parseDictionary,
  serializeBareItem,
  serializeDictionary,
  serializeInnerList,
} from '../../src/format/structured-field.js'
import { sound } from '../fixture-file.js'
import { fc } from '../property.js'

const key = fc.stringMatching(/^[a-z*][a-z0-9_.*-]{0,8}$/)
const bare: fc.Arbitrary<BareItem> = fc.oneof(
  fc.stringMatching(/^[\x20-\x7e]{0,12}$/),
  fc.integer(),
  fc.boolean(),
  fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
  fc.stringMatching(/^[A-Za-z*][A-Za-z0-9:/!#$%&'*+.^_`|~-]{0,8}$/).map((token) => ({ token })),
)
const parameters = fc.array(fc.tuple(key, bare), { maxLength: 3 }).map((pairs) => new Map(pairs))
const item: fc.Arbitrary<Item> = fc.record({ value: bare, parameters }, { noNullPrototype: true })
const list: fc.Arbitrary<InnerList> = fc.record(
  { items: fc.array(item, { maxLength: 4 }), parameters },
  { noNullPrototype: true },
)
const dictionary: fc.Arbitrary<Dictionary> = fc
  .array(fc.tuple(key, fc.oneof(item, list)), { maxLength: 4 })
  .map((pairs) => new Map(pairs))

t.test('a dictionary comes back as it was written', async (t) => {
  fc.assert(
    fc.property(dictionary, (sample) => {
      const text = serializeDictionary(sample)
      const again = sound(parseDictionary(text))
      deepEqual([...again], [...sample])
      equal(serializeDictionary(again), text)
    }),
    { numRuns: 500 },
  )
  t.pass('held for every sample')
})

t.test('a Signature-Input of RFC 9421 is read', async (t) => {
  const field =
    'sig1=("@method";req "@authority" "content-digest"   "date" );created=1618884473;' +
    'keyid="test-key-rsa-pss";alg="ed25519", sig2=()'
  const members = sound(parseDictionary(field))
  t.strictSame([...members.keys()], ['sig1', 'sig2'])
  const first = members.get('sig1') as InnerList
  t.strictSame(
    first.items.map((each) => each.value),
    ['@method', '@authority', 'content-digest', 'date'],
  )
  t.strictSame([...(first.items[0]?.parameters ?? [])], [['req', true]])
  t.strictSame(
    [...first.parameters],
    [
      ['created', 1618884473],
      ['keyid', 'test-key-rsa-pss'],
      ['alg', 'ed25519'],
    ],
  )
  t.equal(
    serializeInnerList(first),
    '("@method";req "@authority" "content-digest" "date");created=1618884473;keyid="test-key-rsa-pss";alg="ed25519"',
  )
})

t.test('byte sequences, booleans, repeated keys and blanks are read as RFC 9651 says', async (t) => {
  const members = sound(parseDictionary('  a=:aGVsbG8=:,\tb=?0, c, a=1 , d;x=?1;x=2;  y="q\\"\\\\"  '))
  t.strictSame([...members.keys()], ['b', 'c', 'a', 'd'])
  t.strictSame(members.get('a'), { value: 1, parameters: new Map() })
  t.strictSame(members.get('c'), { value: true, parameters: new Map() })
  t.strictSame(
    (members.get('d') as Item).parameters,
    new Map<string, BareItem>([
      ['x', 2],
      ['y', 'q"\\'],
    ]),
  )
  const bytes = sound(parseDictionary('a=:aGVsbG8=:')).get('a') as Item
  t.equal(Buffer.from(bytes.value as Uint8Array).toString(), 'hello')
  t.equal(sound(parseDictionary('')).size, 0)
})

const malformed = ['a=', 'a,', 'a,,b', ',a', 'A=1', 'a=1.5', 'a=1234567890123456', 'a="', 'a="\\n"', 'a="é"']
malformed.push(
  'a=:x',
  'a=?2',
  'a=(',
  'a=("b"',
  'a=("b""c")',
  'a=("b"\t"c")',
  'a;',
  'a;B',
  'a=1 b=2',
  'a==1',
  'a=@',
  '"a"',
)

for (const field of malformed) {
  t.test(`${field} is refused`, async (t) => {
    t.equal(parseDictionary(field), undefined)
  })
}

t.test('what the grammar cannot say is not written', async (t) => {
  t.throws(() => serializeBareItem(1.5), RangeError)
  t.throws(() => serializeBareItem(1e15), RangeError)
  t.throws(() => serializeBareItem('é'), RangeError)
  t.throws(() => serializeBareItem({ token: 'a b' }), RangeError)
  t.throws(() => serializeDictionary(new Map([['A', { value: 1, parameters: new Map() }]])), RangeError)
})
