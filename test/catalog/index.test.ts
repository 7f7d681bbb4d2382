import assert from 'node:assert/strict'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import type {
  BlockInput,
  IndexRequest,
  ItemInput,
  TransactionInput,
} from '../../src/catalog/index-protocol.js'
import { packItems, packTransactions } from '../../src/catalog/pack.js'
import type { Selection } from '../../src/catalog/selection.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { fc } from '../property.js'
import { anySelection, anyStep, History } from './history.js'
import {
  blockMessage,
  dump,
  filesOnly,
  itemsMessage,
  Model,
  openHouse,
  readAll,
  tireless,
} from './index-model.js'

/** Messages that build what the model holds, without any history. */
function directly(model: Model): IndexRequest[] {
  const rows = [...model.rows.values()]
  const transactions = (height: number | undefined): TransactionInput[] =>
    rows.flatMap(({ height: own, input }) => (own === height && 'format' in input ? [input] : []))
  const requests = [...model.blocks.values()].map((block) => blockMessage(block, transactions(block.height)))
  requests.push({ kind: 'index-pending', transactions: packTransactions(transactions(undefined)) })
  for (const row of rows) {
    const { input } = row
    if ('format' in input) continue
    const root = rows.find(
      ({ height, index, input }) => height === row.height && index === row.index && 'format' in input,
    )
    requests.push(itemsMessage(root?.id ?? idOfBytes(Buffer.alloc(32)), [input], true))
  }
  return requests
}

t.test('whatever happened to the chain, every selection and page is what a plain list gives', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, { maxLength: 40 }),
      fc.array(
        fc.record({ wanted: anySelection, limit: fc.integer({ min: 1, max: 9 }), backwards: fc.boolean() }),
        {
          minLength: 5,
          maxLength: 12,
        },
      ),
      fc.constantFrom(undefined, filesOnly),
      async (steps, questions, spill) => {
        const house = openHouse(spill)
        const history = new History()
        for (const step of steps) await house.apply(history.play(step))
        for (const { wanted, limit, backwards } of questions) {
          const expected = history.model.select(wanted).map(({ id }) => id)
          if (backwards) expected.reverse()
          assert.deepEqual(readAll(house.index, wanted, backwards, limit), expected)
          assert.equal(house.index.count(wanted, tireless()), expected.length)
        }
        assert.deepEqual(checkIndex(house.tables).problems, [])
        await house.close()
      },
    ),
    { numRuns: 60 },
  )
})

t.test('an index that was unwound holds what one built from the final chain holds', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 60 }), async (steps) => {
      const lived = openHouse()
      const history = new History()
      for (const step of steps) await lived.apply(history.play(step))
      const fresh = openHouse(filesOnly)
      for (const request of directly(history.model)) await fresh.apply([request])
      assert.deepEqual(dump(lived.tables), dump(fresh.tables))
      assert.deepEqual(checkIndex(fresh.tables).problems, [])
      await lived.close()
      await fresh.close()
    }),
    { numRuns: 60 },
  )
})

t.test('an item whose signature was checked stands before one that nobody checked', async (t) => {
  const house = openHouse()
  const chain = new Chain({ items: 40, itemsPerBundle: 2, bundlesPerBlock: 1, seed: 3 })
  const [early, late] = [...chain.blocks()]
  for (const one of [early, late])
    await house.apply([blockMessage(one?.block as BlockInput, one?.transactions ?? [])])
  const roots = [early, late].map((one) => one?.bundles[0]?.rootId as Id)
  const input = early?.bundles[0]?.items[0] as ItemInput
  const outcomeOf = async (at: number, size: number, isUnjudged: boolean) => {
    const items = packItems([{ ...input, size }])
    await house.apply([{ kind: 'index-items', rootId: roots[at] as Id, items, isUnjudged }])
    const { height, size: now, isUnjudged: mark } = house.index.row(idBytes(input.id)) ?? {}
    return [height, now, mark]
  }
  const [first, second] = [early?.block.height, late?.block.height]
  t.same(await outcomeOf(0, 1, true), [first, 1, true], 'a copied header, imported without a look')
  const announced = packItems([{ ...input, size: 3 }])
  await house.apply([
    { kind: 'index-items', rootId: idOfBytes(Buffer.alloc(32, 1)), items: announced, optimistic: true },
  ])
  t.equal(house.index.row(idBytes(input.id))?.height, first, 'an upload of it may never come into a block')
  t.same(await outcomeOf(1, 2, false), [second, 2, undefined], 'gives way, though it is earlier')
  t.same(await outcomeOf(0, 1, true), [second, 2, undefined], 'and does not come back')
  t.same(await outcomeOf(0, 2, false), [first, 2, undefined], 'of two that were checked the earlier counts')
  t.same(
    checkIndex(house.tables).problems.filter((problem) => !problem.startsWith("the owner's key")),
    [],
  )
  await house.close()
})

t.test('lists of thousands, written in any order, are read in chain order from both ends', async (t) => {
  const house = openHouse()
  const model = new Model()
  const blocks = [...new Chain({ items: 2000, itemsPerBundle: 40, bundlesPerBlock: 3, seed: 5 }).blocks()]
  const bundles: { request: IndexRequest; order: number }[] = []
  for (const { block, transactions, bundles: here } of blocks) {
    await house.apply([blockMessage(block as BlockInput, transactions)])
    for (const input of transactions)
      model.put({ id: input.id, height: block.height, index: input.index, input })
    for (const [index, { rootId, items }] of here.entries()) {
      for (const input of items) model.put({ id: input.id, height: block.height, index, input })
      bundles.push({ request: itemsMessage(rootId, items), order: idBytes(rootId)[3] ?? 0 })
    }
  }
  bundles.sort((one, other) => one.order - other.order)
  for (const { request } of bundles) await house.apply([request])
  const report = checkIndex(house.tables)
  t.same(
    report.problems.filter((problem) => !problem.startsWith("the owner's key")),
    [],
  )
  t.equal(report.rows, model.rows.size)
  const tag = (name: string, value: string, match: 'is' | 'isNot' | 'starts' = 'is') => ({
    name: Buffer.from(name),
    values: [Buffer.from(value)],
    match,
  })
  const wanted: Selection[] = [
    {},
    { bundledIn: null },
    { tags: [tag('Type', 'Message')] },
    { tags: [tag('Type', 'Message'), tag('App-Name', 'app-3')] },
    { tags: [tag('Type', 'Message', 'isNot'), tag('App-Name', 'app-1', 'starts')] },
    { tags: [tag('File-Id', 'a', 'starts')], minHeight: 1010, maxHeight: 1020 },
    { minHeight: 1010, maxHeight: 1011 },
  ]
  for (const each of wanted) {
    const expected = model.select(each).map(({ id }) => id)
    t.ok(expected.length > 0)
    t.same(readAll(house.index, each, false, 97), expected)
    t.same(readAll(house.index, each, true, 1000), [...expected].reverse())
    t.equal(house.index.count(each, tireless()), expected.length)
  }
  await house.apply([{ kind: 'unwind', fromHeight: 1005 }])
  model.unwind(1005)
  t.same(
    readAll(house.index, {}, false, 1000),
    model.select({}).map(({ id }) => id),
  )
  t.same(
    checkIndex(house.tables).problems.filter((problem) => !problem.startsWith("the owner's key")),
    [],
  )
  await house.close()
})
