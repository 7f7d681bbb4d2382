import { createHash } from 'node:crypto'
import type { IndexRequest, ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { packTransactions } from '../../src/catalog/pack.js'
import type { Selection } from '../../src/catalog/selection.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { fc } from '../property.js'
import { blockMessage, itemsMessage, Model } from './index-model.js'

const sha = (text: string): Buffer => createHash('sha256').update(text).digest()
const key = (rank: number): Buffer => Buffer.alloc(rank % 2 === 0 ? 512 : 32, rank)
const address = (rank: number): Buffer => createHash('sha256').update(key(rank)).digest()
const names = ['App', 'Type', ''].map((name) => Buffer.from(name))
const values = ['', 'a', 'ab', 'abc', 'é', `${'x'.repeat(250)}1`, `${'x'.repeat(250)}2`].map((value) =>
  Buffer.from(value),
)
/** As messages are packed. */
const byId = (one: { readonly id: Id }, other: { readonly id: Id }): number =>
  Buffer.compare(idBytes(one.id), idBytes(other.id))
const pick = <T>(list: readonly T[], rank: number): T => list[rank % list.length] as T

const anyTags = fc.array(fc.record({ name: fc.constantFrom(...names), value: fc.constantFrom(...values) }), {
  maxLength: 4,
})
const anyParts = fc.record({
  name: fc.integer({ min: 0, max: 30 }),
  owner: fc.integer({ min: 0, max: 4 }),
  target: fc.integer({ min: 0, max: 4 }),
  tags: anyTags,
})
type Parts = typeof anyParts extends fc.Arbitrary<infer Made> ? Made : never

function rowOf(parts: Parts) {
  return {
    size: parts.name * 1000,
    owner: key(parts.owner),
    ownerAddress: address(parts.owner),
    target: parts.target === 0 ? Buffer.alloc(0) : address(parts.target),
    anchor: Buffer.alloc(parts.name % 3 === 0 ? 0 : 32, parts.name),
    tags: parts.tags,
  }
}

/** Something that happens to the chain. */
export const anyStep = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('block' as const), rows: fc.array(anyParts, { maxLength: 4 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('items' as const),
      root: fc.nat(100),
      parent: fc.nat(100),
      rows: fc.array(anyParts, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pending' as const),
      rows: fc.array(anyParts, { maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('unwind' as const), depth: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('expire' as const), items: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('again' as const) }) },
)
export type Step = typeof anyStep extends fc.Arbitrary<infer Made> ? Made : never

/** Turns steps into messages for the keeper, and tells the model the same. */
export class History {
  readonly model = new Model()
  #tip = 99
  #forks = 0
  #last: IndexRequest[] = []

  play(step: Step): IndexRequest[] {
    if (step.kind !== 'again') this.#last = this.#play(step)
    return this.#last
  }

  #play(step: Exclude<Step, { kind: 'again' }>): IndexRequest[] {
    switch (step.kind) {
      case 'block':
        return [this.#block(step.rows)]
      case 'items':
        return this.#items(step)
      case 'pending': {
        const transactions = step.rows.map((parts) => this.#transaction(parts, 0)).sort(byId)
        for (const input of transactions) this.model.put({ id: input.id, height: undefined, index: 0, input })
        return [{ kind: 'index-pending', transactions: packTransactions(transactions) }]
      }
      case 'unwind': {
        const from = Math.max(100, this.#tip - step.depth + 1)
        this.#tip = from - 1
        this.#forks += 1
        this.model.unwind(from)
        return [{ kind: 'unwind', fromHeight: from }]
      }
      case 'expire':
        this.model.expire(step.items)
        return [{ kind: 'expire-pending', beforeSeconds: 6000, itemsBeforeSeconds: step.items ? 6000 : 0 }]
    }
  }

  #transaction(parts: Parts, index: number): TransactionInput {
    const id = idOfBytes(sha(`transaction ${parts.name}`))
    return {
      ...rowOf(parts),
      id,
      index,
      format: 2,
      quantity: 12n,
      reward: 0n,
      dataRoot: Buffer.alloc(32, 1),
      weaveEnd: parts.name * 5000,
    }
  }

  #block(rows: readonly Parts[]): IndexRequest {
    this.#tip += 1
    const id = (height: number): string => sha(`block ${height} ${this.#forks}`).toString('base64url')
    const previous = this.model.blocks.get(this.#tip - 1)?.id ?? id(this.#tip - 1)
    const height = this.#tip
    const block = {
      height,
      id: id(height),
      previous,
      timestamp: height,
      weaveSize: '77',
      transactionCount: 9,
    }
    const transactions = rows.map((parts, index) => this.#transaction(parts, index))
    this.model.blocks.set(height, block)
    for (const input of transactions) this.model.put({ id: input.id, height, index: input.index, input })
    return blockMessage(block, transactions)
  }

  #items({ root, parent, rows }: Extract<Step, { kind: 'items' }>): IndexRequest[] {
    const all = [...this.model.rows.values()]
    const roots = all.filter(({ input }) => 'format' in input)
    const inRoot = roots.length === 0 ? undefined : pick(roots, root)
    if (inRoot === undefined) return []
    const { height, index } = inRoot
    const parents = [inRoot, ...all.filter((row) => row.height === height && row.index === index)]
    const items = rows.map((parts, at): ItemInput => {
      const id = idOfBytes(sha(`item ${parts.name}`))
      const place = { rootItemOffset: 1000 * (parent % 5) + at, parentItemOffset: at, headerSize: 100 }
      return {
        ...rowOf(parts),
        id,
        parentId: pick(parents, parent).id,
        signatureType: parts.name % 5,
        ...place,
      }
    })
    for (const input of [...items].sort(byId)) this.model.put({ id: input.id, height, index, input })
    return [itemsMessage(inRoot.id, items)]
  }
}

const anyTagSelection = fc.record({
  name: fc.constantFrom(...names),
  values: fc.uniqueArray(fc.constantFrom(...values), { maxLength: 3 }),
  match: fc.constantFrom('is' as const, 'isNot' as const, 'starts' as const),
})
const someAddresses = fc.array(fc.integer({ min: 0, max: 5 }).map(address), { maxLength: 3 })
const someIds = fc.array(
  fc.record({ kind: fc.constantFrom('transaction', 'item'), rank: fc.integer({ min: 0, max: 31 }) }),
  { maxLength: 8 },
)
/** What may be asked of it. */
export const anySelection: fc.Arbitrary<Selection> = fc.record(
  {
    ids: someIds.map((ids) => ids.map(({ kind, rank }) => sha(`${kind} ${rank}`))),
    owners: someAddresses,
    recipients: someAddresses,
    tags: fc.array(anyTagSelection, { maxLength: 3 }),
    bundledIn: fc.oneof(
      fc.constant(null),
      someIds.map((ids) => ids.map(({ kind, rank }) => sha(`${kind} ${rank}`))),
    ),
    minHeight: fc.integer({ min: 95, max: 120 }),
    maxHeight: fc.integer({ min: 95, max: 120 }),
  },
  { requiredKeys: [] },
)
