import type {
  BlockInput,
  IndexRequest,
  ItemInput,
  TransactionInput,
} from '../../src/catalog/index-protocol.js'
import { packItems, packTransactions } from '../../src/catalog/pack.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { type Tag, tagOf } from '../../src/format/tag.js'
import { Dice } from '../kit/dice.js'

/**
 * A made-up chain with the shape of a real one: bundles of items, few applications with most of the items, owners and recipients
 * by Zipf's law. Items have 8 to 12 tags as those of file systems have: some that most items share, some that go with their
 * owner (application, drive, folder), and mostly values that no other item has. The same seed, the same chain.
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

/** Messages to the keeper about a block: the block with its transactions, then its bundles. */
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

/** The 32 bytes that the `rank`th name of a kind has: addresses of owners and recipients. */
export function named(kind: number, rank: number): Buffer {
  return new Dice(kind * 1_000_003 + rank + 7).bytes(32)
}

const types = ['application/json', 'text/plain', 'image/png', 'text/html', 'image/webp', 'video/mp4']

/** Applications and their first tags, by rank. */
export function appTag(rank: number): { name: string; value: string } {
  return { name: 'App-Name', value: `app-${rank}` }
}

/** Most items of an owner are of one application. */
export function appOf(owner: number, dice: Dice): number {
  return dice.next() < 0.8 ? new Dice(owner + 11).zipf(200) : dice.zipf(200)
}

export const driveTag = 'Drive-Id'

/** The `rank`th drive of an owner: no other owner writes to it. */
export function driveOf(owner: number, rank: number): string {
  return uuid(named(3, owner * 4 + rank))
}

export const fileNameTag = 'File-Name'

/** Beginnings of file names: ten thousand different ones. */
export function fileName(kind: number): string {
  return `report-${String(kind).padStart(4, '0')}`
}

function uuid(bytes: Buffer): string {
  const hex = bytes.toString('hex', 0, 16)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
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
    // The index finds owners by address, so each key has one address.
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
      const owner = dice.zipf(this.#owners)
      const tags = this.#tags(owner)
      this.#made += 1
      return {
        id: idOfBytes(dice.bytes(32)),
        size,
        ...this.#owner(owner),
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

  /** 8 to 12 tags of an item of this owner. */
  #tags(owner: number): Tag[] {
    const dice = this.#dice
    const drive = driveOf(owner, dice.zipf(4))
    const isFolder = dice.next() < 0.1
    const app = appTag(appOf(owner, dice))
    const tags = [
      tagOf(app.name, app.value),
      tagOf('App-Version', `1.${dice.zipf(50)}.${dice.zipf(10)}`),
      tagOf('Content-Type', types[dice.zipf(types.length)] ?? 'text/plain'),
      tagOf('Entity-Type', isFolder ? 'folder' : 'file'),
      tagOf(driveTag, drive),
      tagOf('Parent-Folder-Id', uuid(named(4, owner * 40 + dice.zipf(40)))),
      tagOf(isFolder ? 'Folder-Id' : 'File-Id', uuid(dice.bytes(16))),
      tagOf('Unix-Time', String(1_600_000_000 + dice.below(100_000_000))),
    ]
    if (this.#made % 2 === 0) tags.push(tagOf(halfTag.name, halfTag.value))
    if (this.#made % Math.max(1, Math.floor(this.options.items / rareItems)) === 0) {
      tags.push(tagOf(rareTag.name, rareTag.value))
    }
    if (dice.next() < 0.6)
      tags.push(tagOf(fileNameTag, `${fileName(dice.below(10_000))}-${dice.below(1000)}`))
    if (dice.next() < 0.3) tags.push(tagOf('Cipher-IV', dice.bytes(12).toString('base64url')))
    return tags
  }
}
