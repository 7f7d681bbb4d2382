import { randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import type { FoundItem } from '../../src/ingest/chain-rows.js'
import { judgeItems } from '../../src/ingest/item-judge.js'
import { BundleWalk, type WalkRules } from '../../src/ingest/walk.js'
import { isBundle } from '../../src/source/roots/learned.js'
import { fc } from '../property.js'
import { bundleItem, item, type MadeItem } from '../source/weave.js'

const root = idOfBytes(randomBytes(32))
const usual: WalkRules = {
  depthMax: 10,
  entriesMax: 1000,
  signed: true,
  opens: ({ header }) => isBundle(header.tags),
}

function walk(bytes: Uint8Array, cuts: readonly number[] = [], rules = usual) {
  const items = new Map<Id, FoundItem>()
  const bad: [Id, string][] = []
  const broken: Id[] = []
  const one = new BundleWalk({ path: [root], start: 0, sizeBytes: bytes.length }, rules, {
    item(found, message) {
      const [held] = judgeItems([{ ...found.header, message: message ?? Buffer.alloc(0) }])
      if (held === true) items.set(found.header.id, found)
      else bad.push([found.header.id, held?.refused ?? 'nothing'])
    },
    bad: (id, refusal) => bad.push([id, refusal.refused]),
    broken: (id) => broken.push(id),
  })
  const borders = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  for (const [at, end] of borders.slice(1).entries()) one.push(bytes.slice(borders[at], end))
  return { items, bad, broken, refusal: one.end() }
}

function forged({ bytes, id }: MadeItem): { id: Id; bytes: Uint8Array } {
  const wrong = Buffer.from(bytes)
  wrong[wrong.length - 1]! ^= 1
  return { id, bytes: wrong }
}

t.test('every item of every level is found where it lies, however the bytes are cut', async (t) => {
  const deep = [item(randomBytes(10)), item(randomBytes(0))]
  const inner = bundleItem(deep)
  const middle = bundleItem([item(randomBytes(5)), inner, item(randomBytes(700))])
  const bytes = encodeBundle([item(randomBytes(99)), middle, bundleItem([])])
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 40 }), async (cuts) => {
      const { items, bad, broken, refusal } = walk(bytes, cuts)
      if (items.size !== 8 || bad.length + broken.length > 0 || refusal !== undefined) return false
      return [...items.values()].every(({ header, place }) => {
        const { rootItemOffset, itemSize, headerSize } = place
        const lies = bytes.subarray(rootItemOffset, rootItemOffset + itemSize)
        return walk(encodeBundle([{ id: header.id, bytes: lies }])).items.has(header.id) && headerSize > 0
      })
    }),
    { numRuns: 30 },
  )
  const { items } = walk(bytes)
  t.same(items.get(deep[0]!.id)?.place, {
    rootId: root,
    parentId: inner.id,
    path: [root, middle.id, inner.id],
    rootItemOffset: Buffer.from(bytes).indexOf(deep[0]!.bytes),
    parentItemOffset: Buffer.from(inner.payload).indexOf(deep[0]!.bytes),
    itemSize: deep[0]!.bytes.length,
    headerSize: deep[0]!.bytes.length - 10,
  })
})

t.test('a bad item does not affect others, also when nested', async (t) => {
  const good = [item(randomBytes(10)), item(randomBytes(20)), item(randomBytes(30))]
  const wrong = [forged(item(randomBytes(40))), forged(item(randomBytes(50)))]
  const nonsense = { id: idOfBytes(randomBytes(32)), bytes: randomBytes(300) }
  const inner = bundleItem([good[1]!, wrong[1] as MadeItem, good[2]!])
  const { items, bad, refusal } = walk(encodeBundle([wrong[0]!, good[0]!, nonsense, inner]))
  t.same(new Set(items.keys()), new Set([...good.map(({ id }) => id), inner.id]))
  t.same(
    new Map(bad),
    new Map([
      [wrong[0]!.id, 'forged'],
      [wrong[1]!.id, 'forged'],
      [nonsense.id, 'malformed'],
    ]),
  )
  t.equal(refusal, undefined)
})

t.test(
  'a bundle inside that is cut off, lies or lies too deep is told; the item around it stays',
  async (t) => {
    const payload = Buffer.from(bundleItem([item(randomBytes(10))]).payload)
    const tags = { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' }
    const cut = item(payload.subarray(0, payload.length - 5), tags)
    const liar = Buffer.from(payload)
    liar.writeUInt32LE(0xffff_ffff, 32)
    const lying = item(liar, tags)
    const huge = item(Buffer.alloc(40, 0xff), tags)
    const { items, broken, refusal } = walk(encodeBundle([cut, lying, huge]))
    t.same([...items.keys()], [cut.id, lying.id, huge.id])
    t.same(broken, [cut.id, lying.id, huge.id])
    t.equal(refusal, undefined)
    const nest = bundleItem([bundleItem([bundleItem([item(randomBytes(1))])])])
    const shallow = walk(encodeBundle([nest]), [], { ...usual, depthMax: 3 })
    t.equal(shallow.items.size, 3, 'the third bundle inside is an item, and not opened')
    t.equal(shallow.broken.length, 1)
  },
)

t.test('bundles that are open at once share one bound of entries', async (t) => {
  const many = bundleItem(Array.from({ length: 6 }, () => item(randomBytes(1))))
  const bytes = encodeBundle([many, item(randomBytes(1)), item(randomBytes(1))])
  t.equal(walk(bytes, [], { ...usual, entriesMax: 9 }).items.size, 9)
  const tight = walk(bytes, [], { ...usual, entriesMax: 8 })
  t.equal(tight.items.size, 3)
  t.same(tight.broken, [many.id])
  t.match(walk(bytes, [], { ...usual, entriesMax: 2 }).refusal, { refused: 'malformed' })
})
