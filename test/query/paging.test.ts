/** Lists that are read page by page while rows arrive, are mined, and forks replace blocks: nothing may be left out. */
import { deepEqual, ok } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import t from 'tap'
import type { ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { packItems, packTransactions } from '../../src/catalog/pack.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { blockMessage, itemsMessage } from '../catalog/index-model.js'
import { fc } from '../property.js'
import { openRig } from './rig.js'

const sha = (text: string): Buffer => createHash('sha256').update(text).digest()
const nowhere = idOfBytes(Buffer.alloc(32))
const row = { size: 1, owner: Buffer.alloc(32, 1), ownerAddress: sha('owner'), target: Buffer.alloc(0) }

function transaction(name: string, index = 0): TransactionInput {
  const amounts = { format: 2, quantity: 0n, reward: 0n, dataRoot: Buffer.alloc(0), weaveEnd: 0 }
  return { ...row, ...amounts, anchor: Buffer.alloc(0), tags: [], id: idOfBytes(sha(name)), index }
}

function item(name: string): ItemInput {
  const place = { parentId: nowhere, rootItemOffset: 0, parentItemOffset: 0, headerSize: 10 }
  return { ...row, ...place, anchor: Buffer.alloc(0), tags: [], signatureType: 2, id: idOfBytes(sha(name)) }
}

type Rig = Awaited<ReturnType<typeof openRig>>

/** A chain that is put into an index, with what waits for a block. */
class Town {
  /** Names of what is in no block, in the order of arrival. */
  waiting: string[] = []
  readonly #blocks: { readonly id: string; readonly names: readonly string[] }[] = []
  #made = 0

  constructor(private readonly rig: Rig) {}

  /** Items and transactions in turn. */
  async arrive(names: readonly string[]): Promise<void> {
    await this.rig.apply(
      names.map((name) =>
        this.#isItem(name)
          ? { kind: 'index-items', rootId: nowhere, items: packItems([item(name)], 'came'), optimistic: true }
          : { kind: 'index-pending', transactions: packTransactions([transaction(name)], 'came') },
      ),
    )
    this.waiting.push(...names)
  }

  async fresh(count: number): Promise<void> {
    await this.arrive(Array.from({ length: count }, () => this.#name()))
  }

  /** A block with every so-manieth of what waits. */
  async mine(every: number): Promise<void> {
    const names = this.waiting.filter((_, at) => at % every === 0)
    this.waiting = this.waiting.filter((_, at) => at % every !== 0)
    const height = this.#blocks.length
    this.#made += 1
    const previous = this.#blocks.at(-1)?.id ?? sha('none').toString('base64url')
    const id = sha(`block ${this.#made}`).toString('base64url')
    const block = { height, id, previous, timestamp: height, weaveSize: '0', transactionCount: 1 }
    const bundle = transaction(`bundle ${this.#made}`, names.length)
    const plain = names.filter((name) => !this.#isItem(name)).map((name, at) => transaction(name, at))
    const items = names.filter((name) => this.#isItem(name)).map(item)
    await this.rig.apply([blockMessage(block, [...plain, bundle]), itemsMessage(bundle.id, items)])
    this.#blocks.push({ id, names })
  }

  /** The last blocks are gone; what was in them arrives anew, in another order. */
  async fork(depth: number): Promise<void> {
    const gone = this.#blocks.splice(Math.max(1, this.#blocks.length - depth))
    if (gone.length === 0) return
    await this.rig.apply([{ kind: 'unwind', fromHeight: this.#blocks.length }])
    await this.arrive(gone.flatMap(({ names }) => names).reverse())
  }

  /** All that the index must show. */
  get ids(): Id[] {
    return [...this.waiting, ...this.#blocks.flatMap(({ names }) => names)].map((name) =>
      idOfBytes(sha(name)),
    )
  }

  #name(): string {
    this.#made += 1
    return `${this.#made % 2 === 0 ? 'item' : 'transaction'} ${this.#made}`
  }

  #isItem(name: string): boolean {
    return name.startsWith('item')
  }
}

interface PageRead {
  readonly ids: readonly Id[]
  readonly next: string | undefined
}

async function page(rig: Rig, sort: string, first: number, after: string): Promise<PageRead> {
  const query = `query ($after: String) { transactions(first: ${first}, after: $after, sort: ${sort}) {
    pageInfo { hasNextPage } edges { cursor node { id } } } }`
  const { data, errors } = await rig.ask(query, { after })
  if (errors !== undefined) throw new Error(JSON.stringify(errors))
  const { pageInfo, edges } = data.transactions as {
    pageInfo: { hasNextPage: boolean }
    edges: { cursor: string; node: { id: Id } }[]
  }
  const cursor = edges.at(-1)?.cursor
  return { ids: edges.map(({ node }) => node.id), next: pageInfo.hasNextPage ? cursor : undefined }
}

const anyEvent = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('arrive' as const), count: fc.nat(5) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('mine' as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('fork' as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
)
type Event = typeof anyEvent extends fc.Arbitrary<infer Made> ? Made : never

async function happen(town: Town, { kind, count }: Event): Promise<void> {
  if (kind === 'arrive') await town.fresh(count)
  else if (kind === 'mine') await town.mine(count)
  else await town.fork(count)
}

/** What happens between one page and the next. */
const anyMoment = fc.array(anyEvent, { maxLength: 3 })

/** Reads all pages while moments pass; what was seen, and how often. */
async function readWhile(
  town: Town,
  rig: Rig,
  {
    sort,
    size,
    moments,
  }: { readonly sort: string; readonly size: number; readonly moments: readonly Event[][] },
): Promise<Map<Id, number>> {
  const seen = new Map<Id, number>()
  for (let pages = 0, after: string | undefined = ''; after !== undefined; pages++) {
    ok(pages < moments.length + (2 * town.ids.length + 30) / size + 5, 'it comes to an end')
    const read: PageRead = await page(rig, sort, size, after)
    for (const id of read.ids) seen.set(id, (seen.get(id) ?? 0) + 1)
    after = read.next
    if (after !== undefined) for (const event of moments[pages] ?? []) await happen(town, event)
  }
  return seen
}

for (const sort of ['HEIGHT_ASC', 'HEIGHT_DESC'] as const) {
  t.test(`${sort}: what is in the index is on some page, whatever moves meanwhile`, async (t) => {
    let [given, repeated] = [0, 0]
    const anyMoments = fc.array(anyMoment, { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(
        anyMoment,
        anyMoments,
        fc.integer({ min: 1, max: 4 }),
        async (before, moments, size) => {
          const rig = await openRig([])
          const town = new Town(rig)
          await town.mine(1)
          await town.fresh(6)
          for (const event of before) await happen(town, event)
          const first = town.ids
          const seen = await readWhile(town, rig, { sort, size, moments })
          // Newest first, what comes after the first page is on none; oldest first everything comes at last.
          const there = new Set(town.ids)
          const owed = sort === 'HEIGHT_ASC' ? town.ids : first.filter((id) => there.has(id))
          deepEqual(
            owed.filter((id) => !seen.has(id)),
            [],
          )
          for (const count of seen.values()) {
            given += count
            repeated += count - 1
          }
          await rig.close()
        },
      ),
      { numRuns: 20 },
    )
    t.ok(given > 2 * repeated, `${given} rows, ${repeated} of them again`)
  })
}

t.test('what waits is listed in the order of arrival, also where it came in one message', async (t) => {
  const rig = await openRig([])
  const town = new Town(rig)
  await town.fresh(20)
  const together = Array.from({ length: 20 }, (_, at) => `item together ${at}`)
  const items = packItems(together.map(item), 'came')
  await rig.apply([{ kind: 'index-items', rootId: nowhere, items, optimistic: true }])
  const arrived = [...town.waiting, ...together].map((name) => idOfBytes(sha(name)))
  t.strictSame((await page(rig, 'HEIGHT_ASC', 100, '')).ids, arrived)
  t.strictSame((await page(rig, 'HEIGHT_DESC', 100, '')).ids, arrived.toReversed())
  // Told again it keeps its place.
  await rig.apply([{ kind: 'index-items', rootId: nowhere, items, optimistic: true }])
  t.strictSame((await page(rig, 'HEIGHT_ASC', 100, '')).ids, arrived)
  await rig.close()
})

t.test('cursors of earlier versions go on where they stood', async (t) => {
  const rig = await openRig([])
  const town = new Town(rig)
  await town.fresh(9)
  await town.mine(2)
  for (const sort of ['HEIGHT_ASC', 'HEIGHT_DESC']) {
    const { ids } = await page(rig, sort, 100, '')
    const seen: Id[] = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const read: PageRead = await page(rig, sort, 2, after)
      seen.push(...read.ids)
      const list = read.next && (JSON.parse(Buffer.from(read.next, 'base64url').toString()) as unknown[])
      after = list && Buffer.from(JSON.stringify(list.slice(0, 5))).toString('base64url')
    }
    t.strictSame(seen, ids, sort)
  }
  await rig.close()
})

t.test(
  'a row that was mined since an old cursor was given is followed by all that came into blocks with it',
  async (t) => {
    const rig = await openRig([])
    const town = new Town(rig)
    await town.mine(1)
    await town.fresh(6)
    const first = idOfBytes(sha(town.waiting[0] ?? ''))
    const old = Buffer.from(JSON.stringify([null, null, true, first, 5000])).toString('base64url')
    const owed = town.ids.filter((id) => id !== first)
    await town.mine(1)
    const read = new Set((await page(rig, 'HEIGHT_ASC', 100, old)).ids)
    t.strictSame(
      owed.filter((id) => !read.has(id)),
      [],
    )
    await rig.close()
  },
)
