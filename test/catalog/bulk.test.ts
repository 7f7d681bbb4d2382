/** What is imported in bulk, past the tables, is what would have come through them. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import t from 'tap'
import type { BulkLimits } from '../../src/catalog/bulk-batch.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import type { IndexOutcome, IndexRequest, TransactionInput } from '../../src/catalog/index-protocol.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { fc } from '../property.js'
import { anySelection, anyStep, History } from './history.js'
import { blockMessage, earlyFlush, filesOnly, openHouse, readAll, tireless } from './index-model.js'

type House = ReturnType<typeof openHouse>

function taken(reply: CatalogReply | Refusal): CatalogReply {
  if (isRefusal(reply)) throw new Error(reply.message)
  return reply
}

/** Sends some requests in bulk, the others through the tables. */
class Mixed {
  #session = 0

  constructor(private readonly house: House) {}

  async #send(request: CatalogRequest): Promise<CatalogReply> {
    return taken(await this.house.keeper.handle(request))
  }

  async begin(): Promise<void> {
    this.#session = (await this.#send({ kind: 'bulk-begin' })).bulk?.session ?? 0
  }

  async put(request: IndexRequest, inBulk: boolean): Promise<IndexOutcome | undefined> {
    const brings = request.kind === 'index-block' || request.kind === 'index-items'
    if (!inBulk || !brings) return (await this.#send(request)).index
    return (await this.#send({ kind: 'bulk', session: this.#session, parts: [request] })).index
  }

  async end(): Promise<void> {
    const { bulk } = await this.#send({ kind: 'bulk-end', session: this.#session })
    assert.equal(bulk?.listed, bulk?.taken)
    this.house.index.refresh()
  }
}

/** Everything that queries get of all rows. */
function rowsOf({ index }: House): unknown[] {
  index.refresh()
  return index.stretch(0, 0xff_ffff, undefined, 1_000_000).map((row) => {
    const texts = Object.entries({ ...row, ...row.place }).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
    ])
    return Object.fromEntries(texts)
  })
}

const anyLimits: fc.Arbitrary<BulkLimits> = fc.record({
  rows: fc.constantFrom(1, 4, 100),
  bytes: fc.constantFrom(1000, 2 ** 20),
})

const anyQuestion = fc.record({ wanted: anySelection, limit: fc.integer({ min: 1, max: 9 }) })

t.test(
  'rows in bulk are as through the tables, in any mixture and whatever happens to the chain',
  async () => {
    let segments = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyStep, { minLength: 5, maxLength: 50, size: 'max' }),
        fc.array(anyQuestion, { minLength: 4, maxLength: 8 }),
        fc.constantFrom(undefined, filesOnly),
        fc.constantFrom(undefined, earlyFlush),
        anyLimits,
        fc.array(fc.record({ inBulk: fc.boolean(), isUnjudged: fc.boolean(), ends: fc.nat(5) }), {
          minLength: 1,
          maxLength: 20,
        }),
        async (steps, questions, spill, flush, limits, ways) => {
          const [plain, house] = [openHouse(spill), openHouse(spill, undefined, flush, limits)]
          const mixed = new Mixed(house)
          await mixed.begin()
          const history = new History()
          for (const [at, step] of steps.entries()) {
            const way = ways[at % ways.length]
            for (const request of history.play(step)) {
              const { isUnjudged = false } = way ?? {}
              const one = request.kind === 'index-items' ? { ...request, isUnjudged } : request
              const wanted = taken(await plain.keeper.handle(one)).index
              assert.deepEqual(await mixed.put(one, way?.inBulk ?? false), wanted)
            }
            if (way?.ends === 0) await mixed.end()
          }
          await mixed.end()
          plain.index.refresh()
          segments += house.tables.segments.all().length
          assert.deepEqual(rowsOf(house), rowsOf(plain))
          assert.deepEqual(house.index.counts(), plain.index.counts())
          assert.deepEqual(checkIndex(house.tables).problems, [])
          for (const { wanted, limit } of questions) {
            assert.deepEqual(
              readAll(house.index, wanted, true, limit),
              readAll(plain.index, wanted, true, limit),
            )
            assert.equal(house.index.count(wanted, tireless()), plain.index.count(wanted, tireless()))
          }
          await plain.close()
          await house.close()
        },
      ),
      { numRuns: 40 },
    )
    assert.ok(segments > 60, `${segments} segments`)
  },
)

const sha = (text: string): Buffer => createHash('sha256').update(text).digest()

function transaction(name: string): TransactionInput {
  const owner = Buffer.alloc(32, 5)
  return {
    id: idOfBytes(sha(name)),
    size: 10,
    owner,
    ownerAddress: createHash('sha256').update(owner).digest(),
    target: Buffer.alloc(0),
    anchor: Buffer.alloc(0),
    tags: [{ name: Buffer.from('Name'), value: Buffer.from(name) }],
    index: 0,
    format: 2,
    quantity: 0n,
    reward: 0n,
    dataRoot: Buffer.alloc(32),
    weaveEnd: 0,
  }
}

function block(height: number, name: string, above: string) {
  const id = (one: string): string => Buffer.alloc(48, one).toString('base64url')
  return {
    height,
    id: id(name),
    previous: id(above),
    timestamp: height,
    weaveSize: '0',
    transactionCount: 1,
  }
}

t.test(
  'what is in no list yet is seen by nobody, and another block at a height takes its place',
  async (t) => {
    const house = openHouse()
    const mixed = new Mixed(house)
    await mixed.begin()
    await mixed.put(blockMessage(block(100, 'a', 'z'), [transaction('one')]), true)
    await mixed.put(blockMessage(block(101, 'b', 'a'), [transaction('two')]), true)
    house.index.refresh()
    t.equal(house.index.topHeight(), undefined)
    t.equal(house.index.row(sha('one')), undefined)
    const moved = await mixed.put(blockMessage(block(101, 'c', 'a'), [transaction('three')]), true)
    t.match(moved, { added: 1 })
    house.index.refresh()
    t.equal(house.index.block(101)?.id, block(101, 'c', 'a').id)
    t.equal(house.index.row(sha('one'))?.height, 100)
    t.equal(house.index.row(sha('two')), undefined)
    t.equal(house.index.row(sha('three'))?.height, 101)
    t.same(checkIndex(house.tables).problems, [])
    await house.close()
  },
)

t.test('where no row leaves the tables what is imported in bulk goes into them', async (t) => {
  const house = openHouse(undefined, undefined, { rows: 0, forkDepth: 0 })
  const mixed = new Mixed(house)
  await mixed.begin()
  await mixed.put(blockMessage(block(100, 'a', 'z'), [transaction('one')]), true)
  await mixed.end()
  t.equal(house.tables.sets.counts().rows, 1)
  t.same(house.tables.segments.all(), [])
  await house.close()
})

t.test('a session takes nothing after the next one began, and closing lists what was taken', async (t) => {
  const house = openHouse()
  const mixed = new Mixed(house)
  await mixed.begin()
  await mixed.put(blockMessage(block(100, 'a', 'z'), [transaction('one')]), true)
  await new Mixed(house).begin()
  await t.rejects(mixed.put(blockMessage(block(101, 'b', 'a'), [transaction('two')]), true), /is over/)
  await t.rejects(mixed.end(), /is over/)
  house.index.refresh()
  t.equal(house.index.topHeight(), 100)
  t.match(house.index.segmentTotals(), { rows: 1, removed: 0 })
  t.same([...house.index.segmentTotals().levels], [[0, 1]])
  const next = new Mixed(house)
  await next.begin()
  await next.put(blockMessage(block(101, 'b', 'a'), [transaction('two')]), true)
  await house.close()
  const { environment } = openCatalogTables(house.path)
  const index = new ChainIndex(environment, new Generations())
  t.equal(index.row(sha('two'))?.height, 101)
  await environment.close()
})
