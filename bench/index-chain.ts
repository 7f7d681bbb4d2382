import type { BlockInput, IndexRequest, ItemInput, TransactionInput } from '../src/catalog/index-protocol.js'
import { packItems, packTransactions } from '../src/catalog/pack.js'
import { type Id, idOfBytes } from '../src/format/id.js'
import { type Tag, tagOf } from '../src/format/tag.js'

/**
 * A made-up chain with the shape of a real one: bundles of items, few applications with most of the items,
 * owners and recipients by Zipf's law, tags that every item has and tags that no other item has. The same
 * seed, the same chain.
 */
export interface ChainOptions {
  readonly items: number
  readonly itemsPerBundle: number
  readonly bundlesPerBlock: number
  readonly seed: number
}

export interface ChainBlock {
  readonly block: BlockInput
  readonly transactions: readonly TransactionInput[]
  readonly bundles: readonly { readonly rootId: Id; readonly items: readonly ItemInput[] }[]
}

/** What a keeper is told of a block: itself with its transactions, then its bundles. */
export function messagesOf({ block, transactions, bundles }: ChainBlock): IndexRequest[] {
  return [
    { kind: 'index-block', block, transactions: packTransactions(transactions) },
    ...bundles.map(
      ({ rootId, items }): IndexRequest => ({ kind: 'index-items', rootId, items: packItems(items) }),
    ),
  ]
}

/** Tag on every second item, and tag on 50 items of the whole chain. */
export const halfTag = { name: 'Type', value: 'Message' }
export const rareTag = { name: 'Campaign', value: 'one-of-fifty' }
const rareItems = 50

/** Numbers between 0 and 1 (xorshift128). */
export class Dice {
  #a: number
  #b = 362_436_069
  #c = 521_288_629
  #d = 88_675_123

  constructor(seed: number) {
    this.#a = seed | 1
    for (let turn = 0; turn < 20; turn += 1) this.word()
  }

  word(): number {
    const t = this.#a ^ (this.#a << 11)
    this.#a = this.#b
    this.#b = this.#c
    this.#c = this.#d
    this.#d = this.#d ^ (this.#d >>> 19) ^ t ^ (t >>> 8)
    return this.#d >>> 0
  }

  next(): number {
    return this.word() / 2 ** 32
  }

  below(count: number): number {
    return Math.floor(this.next() * count)
  }

  /** Small numbers far more often than large ones: about 1/rank. */
  zipf(count: number): number {
    return Math.min(count - 1, Math.floor(count ** this.next()) - 1)
  }

  bytes(count: number): Buffer {
    const bytes = Buffer.allocUnsafe(count)
    for (let at = 0; at < count; at += 4) bytes.writeUInt32LE(this.word(), Math.min(at, count - 4))
    return bytes
  }
}

/** The 32 bytes that the `rank`th name of a kind has: addresses of owners and recipients. */
export function named(kind: number, rank: number): Buffer {
  return new Dice(kind * 1_000_003 + rank + 7).bytes(32)
}

const types = ['application/json', 'text/plain', 'image/png', 'text/html', 'image/webp', 'video/mp4']

/** Applications and their first tags, by rank. */
export function appTag(rank: number): { name: string; value: string } {
  return { name: 'App-Name', value: `app-${rank}` }
}

export class Chain {
  readonly #dice: Dice
  readonly #owners: number
  #made = 0

  constructor(private readonly options: ChainOptions) {
    this.#dice = new Dice(options.seed)
    this.#owners = Math.max(10, Math.floor(options.items / 50))
  }

  /** Blocks from height 1000 on until the items are all there. */
  *blocks(): Generator<ChainBlock> {
    let previous = this.#dice.bytes(48).toString('base64url')
    for (let height = 1000; this.#made < this.options.items; height += 1) {
      const id = this.#dice.bytes(48).toString('base64url')
      const block = { height, id, previous, timestamp: 1_600_000_000 + height * 120, weaveSize: '0' }
      previous = id
      const bundles = []
      const transactions: TransactionInput[] = []
      for (let index = 0; index < this.options.bundlesPerBlock; index += 1) {
        const root = this.#transaction(index)
        transactions.push(root)
        if (this.#made < this.options.items) bundles.push({ rootId: root.id, items: this.#items(root.id) })
      }
      yield { block: { ...block, transactionCount: transactions.length }, transactions, bundles }
    }
  }

  #transaction(index: number): TransactionInput {
    const dice = this.#dice
    return {
      id: idOfBytes(dice.bytes(32)),
      size: 1_000_000,
      ...this.#owner(dice.zipf(20)),
      target: Buffer.alloc(0),
      anchor: dice.bytes(48),
      tags: [
        tagOf('Bundle-Format', 'binary'),
        tagOf('Bundle-Version', '2.0.0'),
        tagOf('App-Name', 'bundler'),
      ],
      index,
      format: 2,
      quantity: 0n,
      reward: BigInt(dice.word()),
      dataRoot: dice.bytes(32),
      weaveEnd: 0,
    }
  }

  #owner(rank: number): { owner: Uint8Array; ownerAddress: Uint8Array } {
    const sizes = [512, 65, 32]
    const owner = Buffer.alloc(sizes[rank % 3] ?? 32, rank)
    // One key, one address: that is what the index goes by.
    owner.writeUInt32LE(rank, 0)
    return { owner, ownerAddress: named(1, rank) }
  }

  #items(rootId: Id): ItemInput[] {
    const count = Math.min(this.options.itemsPerBundle, this.options.items - this.#made)
    let offset = 32 + 64 * count
    return Array.from({ length: count }, () => {
      const dice = this.#dice
      const size = 100 + dice.zipf(100_000)
      const start = offset
      offset += size + 1200
      const tags = this.#tags()
      this.#made += 1
      return {
        id: idOfBytes(dice.bytes(32)),
        size,
        ...this.#owner(dice.zipf(this.#owners)),
        target: dice.next() < 0.4 ? named(2, dice.zipf(this.#owners)) : Buffer.alloc(0),
        anchor: dice.next() < 0.5 ? dice.bytes(32) : Buffer.alloc(0),
        tags,
        signatureType: 1,
        parentId: rootId,
        rootItemOffset: start,
        parentItemOffset: start,
        headerSize: 1200,
      }
    })
  }

  #tags(): Tag[] {
    const dice = this.#dice
    const app = appTag(dice.zipf(200))
    const tags = [
      tagOf(app.name, app.value),
      tagOf('Content-Type', types[dice.zipf(types.length)] ?? 'text/plain'),
    ]
    if (this.#made % 2 === 0) tags.push(tagOf(halfTag.name, halfTag.value))
    if (this.#made % Math.max(1, Math.floor(this.options.items / rareItems)) === 0) {
      tags.push(tagOf(rareTag.name, rareTag.value))
    }
    if (dice.next() < 0.3) tags.push(tagOf('File-Id', dice.bytes(16).toString('hex')))
    if (dice.next() < 0.3) tags.push(tagOf('Unix-Time', String(1_600_000_000 + dice.below(100_000_000))))
    if (dice.next() < 0.5) tags.push(tagOf('Version', `1.${dice.zipf(50)}.0`))
    return tags
  }
}
