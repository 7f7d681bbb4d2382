import { createHash } from 'node:crypto'
import t from 'tap'
import { readItemFilter } from '../../config/item-filter.js'
import { itemFilterJson } from '../../config/item-filter-text.js'
import { readConfig } from '../../config/read.js'
import { idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { type FilterSubject, matches } from '../../src/ingest/filter.js'

const owner = Buffer.alloc(32, 7)
const address = createHash('sha256').update(owner).digest('base64url')
const id = idOfBytes(Buffer.alloc(32, 1))
const root = idOfBytes(Buffer.alloc(32, 2))
const none = new Uint8Array(0)
const tags = [tagOf('App', 'one'), tagOf('Type', 'image/png'), tagOf('App', 'two')]
const transaction: FilterSubject = {
  id,
  owner,
  tags,
  target: none,
  anchor: none,
  signature: Buffer.alloc(2),
  sizeBytes: 10,
  transfer: { format: 2, quantity: 5n, reward: 0n, dataRoot: none },
}
const { transfer: _, ...rest } = transaction
const nested: FilterSubject = { ...rest, signatureType: 2, parentId: root, rootId: root }

function takes(json: unknown, subject: FilterSubject = transaction): boolean {
  const read = readItemFilter(JSON.stringify(json))
  if ('wrong' in read) throw new Error(read.wrong)
  // Whatever is read is shown as it was written.
  t.strictSame(itemFilterJson(read.value), json)
  return matches(read.value, subject)
}

t.test('filters match what they describe', async (t) => {
  t.equal(takes({ always: true }), true)
  t.equal(takes({ never: true }), false)
  t.equal(takes({ isNestedBundle: true }), false)
  t.equal(takes({ isNestedBundle: true }, nested), true)
  t.equal(takes({ tags: [{ name: 'App' }] }), true)
  t.equal(takes({ tags: [{ name: 'app' }] }), false, 'names are compared exactly')
  t.equal(takes({ tags: [{ name: 'App', value: 'two' }] }), true, 'any tag of the name will do')
  t.equal(takes({ tags: [{ name: 'App', value: 'one' }, { name: 'None' }] }), false, 'all must be there')
  t.equal(takes({ tags: [{ name: 'Type', valueStartsWith: 'image/' }] }), true)
  t.equal(takes({ tags: [{ name: 'Type', valueStartsWith: 'image/png+' }] }), false)
  t.equal(takes({ attributes: { owner_address: address } }), true)
  t.equal(takes({ attributes: { owner_address: address, data_size: 10, quantity: '5' } }), true)
  t.equal(takes({ attributes: { data_size: '10' } }), false, 'a text is no number')
  t.equal(takes({ attributes: { quantity: '5' } }, nested), false, 'items carry no amounts')
  t.equal(takes({ attributes: { parent_id: root, signature_type: 2 } }, nested), true)
  t.equal(takes({ and: [{ always: true }, { not: { never: true } }] }), true)
  t.equal(takes({ and: [{ always: true }, { never: true }] }), false)
  t.equal(takes({ or: [{ never: true }, { tags: [{ name: 'App' }] }] }), true)
})

t.test('a partition is the hash of a field, and every id is in exactly one', async (t) => {
  const bucket = createHash('sha256').update(id).digest().readUIntBE(0, 6) % 4
  for (const target of [0, 1, 2, 3]) {
    const filter = { hashPartition: { partitionCount: 4, partitionKey: 'id', targetPartitions: [target] } }
    t.equal(takes(filter), target === bucket)
  }
  const all = { hashPartition: { partitionCount: 1, partitionKey: 'parent_id', targetPartitions: [0] } }
  t.equal(takes(all, nested), true)
  t.equal(takes(all), false, 'a field that is not there is in no partition')
})

t.test('an error in a filter is named', async (t) => {
  const cases: [string, RegExp][] = [
    ['{"always"', /not JSON/],
    ['[]', /\[\] where a filter must be/],
    ['{}', /no kinds/],
    ['{"always":true,"never":true}', /several kinds/],
    ['{"allways":true}', /unknown filter "allways"/],
    ['{"constructor":true}', /unknown filter "constructor"/],
    ['{"always":false}', /false where true/],
    ['{"tags":[]}', /"tags" needs a list/],
    ['{"tags":[{"value":"x"}]}', /tag without name/],
    ['{"tags":[{"name":"x","value":"y","valueStartsWith":"z"}]}', /one of value/],
    ['{"tags":[{"name":"x","valueEndsWith":"z"}]}', /other fields/],
    ['{"attributes":{"colour":"red"}}', /unknown attribute "colour"/],
    ['{"attributes":{"id":null}}', /text or a number/],
    ['{"and":{"always":true}}', /"and" needs a list/],
    ['{"or":[{"tags":[{"name":1}]}]}', /tag without name/],
    ['{"not":[]}', /where a filter must be/],
    ['{"hashPartition":{"partitionCount":0,"partitionKey":"id","targetPartitions":[0]}}', /partitionCount 0/],
    ['{"hashPartition":{"partitionCount":2,"partitionKey":"id","targetPartitions":[2]}}', /below 2/],
    ['{"hashPartition":{"partitionCount":2,"partitionKey":"x","targetPartitions":[1]}}', /partitionKey "x"/],
    [`${'{"not":'.repeat(30)}{"always":true}${'}'.repeat(30)}`, /deep/],
  ]
  for (const [text, wanted] of cases) t.match((readItemFilter(text) as { wrong: string }).wrong, wanted, text)
})

t.test('a bad filter stops the start, and its setting is named', async (t) => {
  const wrong = readConfig(
    { ANS104_UNBUNDLE_FILTER: '{"allways":true}', STOP_HEIGHT: '5', START_HEIGHT: '6' },
    {},
  )
  t.same(Array.isArray(wrong) && wrong.map((line) => line.split(':')[0]), [
    'ANS104_UNBUNDLE_FILTER',
    'STOP_HEIGHT must not be below START_HEIGHT',
  ])
  const right = readConfig({ ANS104_INDEX_FILTER: '{"never":true}' }, {})
  t.same(!Array.isArray(right) && right.indexing.indexFilter, { kind: 'never' })
})
