import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import t from 'tap'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import type { IndexRequest, ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { IndexWriter } from '../../src/catalog/index-writer.js'
import { packItems, packTransactions } from '../../src/catalog/pack.js'
import type { FlushLimits } from '../../src/catalog/segment-upkeep.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import type { Environment, Table } from '../../src/store/lmdb.js'
import { scratch } from '../scratch.js'
import { blockMessage, tireless } from './index-model.js'

const sha = (text: string): Buffer => createHash('sha256').update(text).digest()
const idOf = (name: string): Id => idOfBytes(sha(name))
const owner = Buffer.alloc(32, 5)

function common(name: string, tags = 1) {
  return {
    id: idOf(name),
    size: 10,
    owner,
    ownerAddress: createHash('sha256').update(owner).digest(),
    target: Buffer.alloc(0),
    anchor: Buffer.from(name),
    tags: Array.from({ length: tags }, (_, at) => ({
      name: Buffer.from(`tag ${at}`),
      value: Buffer.from(`${name.length % 2} ${at}`),
    })),
  }
}

function transaction(name: string, tags = 1): TransactionInput {
  const facts = { index: 0, format: 2, quantity: 0n, reward: 0n, dataRoot: Buffer.alloc(32), weaveEnd: 0 }
  return { ...common(name, tags), ...facts }
}

function items(root: string, names: readonly string[]): IndexRequest {
  const place = { parentId: idOf(root), rootItemOffset: 0, parentItemOffset: 0, headerSize: 9 }
  const rows: ItemInput[] = names.map((name) => ({ ...common(name), ...place, signatureType: 2 }))
  return { kind: 'index-items', rootId: idOf(root), items: packItems(rows) }
}

const blockId = (height: number, fork = 0): string =>
  Buffer.alloc(48, height + 100 * fork).toString('base64url')

function block(height: number, names: readonly string[], forks: readonly [number, number] = [0, 0]) {
  const facts = { timestamp: height, weaveSize: '0', transactionCount: names.length }
  const about = { height, id: blockId(height, forks[1]), previous: blockId(height - 1, forks[0]), ...facts }
  return blockMessage(
    about,
    names.map((name, index) => ({ ...transaction(name), index })),
  )
}

const pending = (names: readonly string[], tags = 1): IndexRequest => ({
  kind: 'index-pending',
  transactions: packTransactions(names.map((name) => transaction(name, tags))),
})

/** A writer in a folder whose steps are taken one by one, and a reader beside it. */
function openedIn(
  path: string,
  flush: FlushLimits,
  wrap = (environment: Environment): Environment => environment,
) {
  const environment = wrap(openCatalogTables(path).environment)
  const tables = openIndexTables(environment)
  const writer = new IndexWriter(tables, undefined, flush)
  const reading = openCatalogTables(path).environment
  const seen = openIndexTables(reading)
  const index = new ChainIndex(reading, new Generations())
  const apply = (...requests: IndexRequest[]): void => {
    environment.write(() => {
      for (const request of requests) writer.apply(request, 1000, () => undefined)
      writer.settle()
    })
    writer.tend()
  }
  /** Anchors of all rows, which are their names, in the order of the chain; those in no block last. */
  const rows = (limit = 7): string[] => {
    reading.refresh()
    const found: string[] = []
    for (let after: Uint8Array | undefined; ; ) {
      const page = { backwards: false, limit, ...(after === undefined ? {} : { after }) }
      const { entries, more } = index.rows({}, page, tireless())
      found.push(...entries.map(({ anchor }) => Buffer.from(anchor).toString()))
      if (!more) return found
      after = entries.at(-1)?.key
    }
  }
  const step = (): boolean => {
    const upkeep = writer.tendSegments()
    for (const retired of writer.takeRetired()) rmSync(retired)
    return upkeep === 'more'
  }
  const problems = (): readonly string[] => {
    reading.refresh()
    return checkIndex(seen).problems
  }
  const close = async (): Promise<void> => {
    writer.close()
    await reading.close()
    await environment.close()
  }
  return { path, environment, tables, seen, writer, index, reading, apply, rows, step, problems, close }
}

const small: FlushLimits = {
  rows: 12,
  forkDepth: 2,
  rowsEach: 1,
  wordsEach: 6,
  clearing: { dropMax: 4, entriesEach: 4 },
  merges: { segmentsAlike: 3, levelMax: 2 },
}
const eight = [1, 2, 3, 4, 5, 6, 7, 8]

/** Blocks (eight, or `heights`) of a transaction and an item, and three transactions in no block. */
function fill({ apply }: ReturnType<typeof openedIn>, heights: readonly number[] = eight): string[] {
  for (const name of ['p1', 'p2', 'p3']) apply(pending([name]))
  for (const height of heights) apply(block(height, [`t${height}`]), items(`t${height}`, [`i${height}`]))
  return [...heights.flatMap((height) => [`t${height}`, `i${height}`]), 'p1', 'p2', 'p3']
}

/** Blocks come to a process that was started again before the flush goes on: more rows may leave the tables than before. */
async function blocksAfter(
  environment: Environment,
  copy: string,
  expected: readonly string[],
): Promise<void> {
  await environment.copyTo(copy)
  const house = openedIn(copy, { ...small, isLast: true })
  const later = [9, 10, 11, 12]
  for (const height of later) house.apply(block(height, [`t${height}`]))
  const all = [...expected, ...later.map((height) => `t${height}`)].sort()
  for (let isBusy = true; isBusy; ) {
    isBusy = house.step()
    assert.deepEqual([...house.rows()].sort(), all, 'each is there once')
    assert.deepEqual(house.problems(), [])
  }
  await house.close()
}

t.test('each row is there once at every step, and a kill between any two loses none', async (t) => {
  const house = openedIn(scratch('frozen-steps'), { ...small, isLast: true })
  const expected = fill(house)
  let swaps = 0
  let copies = 0
  for (let isBusy = true, steps = 0; isBusy; steps += 1) {
    isBusy = house.step()
    assert.deepEqual(house.rows(1 + (steps % 9)), expected, `step ${steps}`)
    assert.deepEqual(house.problems(), [], `step ${steps}`)
    assert.deepEqual(house.index.counts(), { rows: expected.length, blocks: 8, pending: 3 })
    swaps = house.seen.sets.state.swaps
    // What a process finds that starts here.
    const copy = scratch(`frozen-copy-${steps}`)
    await house.environment.copyTo(copy)
    const after = openedIn(copy, { ...small, isLast: true })
    while (after.step());
    assert.deepEqual(after.rows(), expected, `after a kill at step ${steps}`)
    assert.deepEqual(after.problems(), [], `after a kill at step ${steps}`)
    await after.close()
    await blocksAfter(house.environment, scratch(`frozen-later-${steps}`), expected)
    copies += 1
  }
  t.equal(swaps, 1)
  t.ok(copies > 20, `${copies} steps`)
  t.ok(house.seen.sets.counts().rows < 8, 'most rows are in segments')
  t.equal(house.seen.sets.state.frozen, undefined)
  await house.close()
})

t.test('a fork of every depth at steps of a flush leaves what the chain has', async (t) => {
  const [top, deepest, stepsApart] = [20, 18, 5]
  const heights = Array.from({ length: top }, (_, at) => at + 1)
  const seen = new Set<number>()
  for (let at = 0, isLong = true; isLong; at += stepsApart) {
    // Neighbouring steps have depths that lie apart.
    const depth = 1 + (((at / stepsApart) * 5) % deepest)
    const house = openedIn(scratch(`fork-${at}`), { ...small, isLast: true })
    const before = fill(house, heights)
    let steps = 0
    while (steps < at && house.step()) steps += 1
    isLong = steps === at
    const first = top + 1 - depth
    house.apply({ kind: 'unwind', fromHeight: first })
    const gone = new Set(heights.slice(-depth).flatMap((one) => [`t${one}`, `i${one}`]))
    const what = `depth ${depth} at step ${at}`
    assert.deepEqual(
      house.rows(),
      before.filter((name) => !gone.has(name)),
      what,
    )
    // The other branch has some of the same rows, also of what was in no block.
    const others = [`i${top}`, 'new']
    house.apply(block(first, ['p2', `t${first}`], [0, 1]), items(`t${first}`, others))
    house.apply(pending(['p4']))
    const expected = [
      ...before.filter((name) => !gone.has(name) && !name.startsWith('p')),
      'p2',
      `t${first}`,
      ...others.sort((one, other) => Buffer.compare(sha(one), sha(other))),
      'p1',
      'p3',
      'p4',
    ]
    assert.deepEqual(house.rows(3), expected, what)
    while (house.step()) assert.deepEqual(house.rows(9), expected, `${what}, and after it`)
    assert.deepEqual(house.problems(), [], what)
    await house.close()
    seen.add(depth)
  }
  t.equal(seen.size, deepest, 'each depth was there')
})

t.test('a cursor goes on where it stood, whichever tables or files have the rows by then', async (t) => {
  for (const backwards of [false, true]) {
    const house = openedIn(scratch('frozen-cursor'), { ...small, isLast: true })
    const expected = fill(house)
    const wanted = {
      tags: [{ name: Buffer.from('tag 0'), values: [Buffer.from('0 0')], match: 'is' as const }],
    }
    for (const selection of [{}, wanted]) {
      const found: string[] = []
      for (let after: Uint8Array | undefined; ; house.step()) {
        house.reading.refresh()
        const page = { backwards, limit: 1, ...(after === undefined ? {} : { after }) }
        const { entries, more } = house.index.rows(selection, page, tireless())
        found.push(...entries.map(({ anchor }) => Buffer.from(anchor).toString()))
        after = entries.at(-1)?.key
        if (!more) break
      }
      t.same(backwards ? found.reverse() : found, expected)
    }
    await house.close()
  }
})

/** Counts what transactions write, in all tables. */
function counting(environment: Environment, note: (writes: number) => void): Environment {
  let writes = 0
  const counted = (table: Table): Table => ({
    ...table,
    put: (key, value) => {
      writes += 1
      table.put(key, value)
    },
    add: (key, value) => {
      writes += 1
      return table.add(key, value)
    },
    append: (key, value) => {
      writes += 1
      table.append(key, value)
    },
    remove: (key) => {
      writes += 1
      table.remove(key)
    },
  })
  return {
    ...environment,
    table: (name) => counted(environment.table(name)),
    write: (act) => {
      writes = 0
      const result = environment.write(act)
      note(writes)
      return result
    },
  }
}

t.test('the longest step of a flush does not depend on what strangers put in', async (t) => {
  const longest = async (rows: number): Promise<number> => {
    let most = 0
    const limits: FlushLimits = { rows: 400, forkDepth: 2, isLast: true, wordsEach: 2000 }
    const house = openedIn(scratch(`strangers-${rows}`), limits, (environment) =>
      counting(environment, (writes) => {
        most = Math.max(most, writes)
      }),
    )
    const names = Array.from({ length: rows }, (_, at) => `stranger ${at}`)
    for (let at = 0; at < rows; at += 50) house.apply(pending(names.slice(at, at + 50), 128))
    // As many words leave as are moved.
    const words = rows * 132
    for (let at = 0, height = 1; at * 12 < words || at < 400; at += 200, height += 1) {
      const own = Array.from({ length: 200 }, (_, item) => `own ${at + item}`)
      house.apply(block(height, own))
    }
    for (const height of [201, 202, 203]) house.apply(block(height, [`t${height}`]))
    most = 0
    let steps = 0
    while (house.step()) steps += 1
    t.same(house.problems(), [])
    t.equal(house.index.counts().pending, rows)
    t.ok(house.seen.sets.counts().rows < rows + 50, 'the others are in segments')
    t.ok(steps > rows / 16, `${steps} steps`)
    await house.close()
    return most
  }
  const [few, many] = [await longest(100), await longest(400)]
  t.ok(many < 8000, `${many} writes in one transaction`)
  t.ok(many < few * 2, `${few} and ${many} writes in one transaction`)
})

t.test('an index of one set of tables becomes segments in steps, each of which stays', async (t) => {
  const path = scratch('frozen-old')
  const old = openedIn(path, { rows: 0, forkDepth: 2 })
  const names: string[] = []
  for (let height = 1; height < 60; height += 1) {
    const own = Array.from({ length: 10 }, (_, at) => `t${height} ${at}`)
    names.push(...own)
    old.apply(block(height, own))
  }
  old.apply(pending(['p1']))
  old.environment.write(() => old.tables.indexMeta.put(Buffer.from('version'), Buffer.from('sluice index 2')))
  t.equal(old.seen.sets.state.swaps, 0)
  await old.close()

  const limits: FlushLimits = { rows: 100, forkDepth: 2, rowsEach: 20 }
  const first = openedIn(path, limits)
  t.ok(first.step())
  first.apply(block(60, ['next']))
  t.notOk(first.step(), 'it waits until fewer rows would be moved')
  for (let height = 61; height < 63; height += 1) first.apply(block(height, [`t${height}`]))
  while (first.seen.segments.all().length < 3) {
    first.step()
    t.same(first.rows(100), [...names, 'next', 't61', 't62', 'p1'])
  }
  await first.close()

  const second = openedIn(path, limits)
  t.equal(second.seen.segments.all().length, 3, 'segments that were listed are there')
  while (second.step());
  t.same(second.rows(100), [...names, 'next', 't61', 't62', 'p1'])
  t.same(second.problems(), [])
  t.same(
    second.seen.segments.all().map(({ segment }) => segment.count),
    [100, 100, 100, 100, 100, 90],
  )
  t.equal(second.seen.sets.counts().rows, 4)
  await second.close()
})

t.test('without segments the tables never change roles', async (t) => {
  const house = openedIn(scratch('frozen-never'), { rows: 0, forkDepth: 0 })
  fill(house)
  t.notOk(house.step())
  t.equal(house.seen.sets.state.swaps, 0)
  await house.close()
})
