import { createHash } from 'node:crypto'
import type {
  IndexRequest,
  ItemInput,
  RowInput,
  TransactionInput,
} from '../../../src/catalog/index-protocol.js'
import { packTransactions } from '../../../src/catalog/pack.js'
import { type Id, idBytes, idOfBytes } from '../../../src/format/id.js'
import { blockMessage, itemsMessage, Model, type ModelRow } from '../../catalog/index-model.js'
import { below, pick, random } from '../../property.js'

const sha = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Small numbers come most often. */
export const skewed = (count: number): number => Math.floor(count * random() ** 3)
export const chance = (share: number): boolean => random() < share

/** Owners and recipients; each address is the hash of a key. */
export const people = 60
const key = (rank: number): Buffer => Buffer.alloc(rank % 2 === 0 ? 512 : 32, `key ${rank}`)
export const address = (rank: number): Buffer => createHash('sha256').update(key(rank)).digest()

const long = 'x'.repeat(300)
/** Tag names, and the values that each has. */
export const vocabulary: Readonly<Record<string, readonly string[]>> = {
  'App-Name': ['Drive', 'Drive-Web', 'Drive-CLI', 'Mirror', 'Mail', 'drive', 'Dr', ''],
  'Content-Type': ['image/png', 'image/jpeg', 'image/*', 'text/html', 'text/plain', 'application/json'],
  Größe: ['é', 'éa', '日本', '日本語', '%', '_', "o'clock", 'a"b\\c'],
  '': ['', 'nothing', 'no name'],
  Long: [long, `${long}1`, `${long}2`, `${long}12`],
}
const names = Object.keys(vocabulary)

/** What happens to a chain, as messages for the keeper and as a plain map: large, and seeded. */
export class Story {
  readonly model = new Model()
  /** Seconds at which the index first saw each row. */
  readonly seen = new Map<Id, number>()
  /** Height of the first block. */
  readonly start = 100
  tip = this.start - 1
  nowSeconds = 5000
  #forks = 0
  #made = 0
  /** Items that nobody has put into a block, with the root that they are to be in. */
  readonly #promised: { rootId: Id; items: ItemInput[] }[] = []

  /** The next thing that happens. */
  next(): IndexRequest[] {
    this.nowSeconds += 1 + below(30)
    const draw = random()
    if (draw < 0.4) return this.#grow()
    if (draw < 0.5) return this.#late()
    if (draw < 0.6) return this.#pending()
    if (draw < 0.7) return this.#promise()
    if (draw < 0.8) return this.#promote()
    if (draw < 0.88) return this.#again()
    if (draw < 0.94) return this.#fork(1 + below(6))
    if (draw < 0.97) return this.#expire()
    return this.#grow()
  }

  #put(row: ModelRow): void {
    if (!this.model.rows.has(row.id)) this.seen.set(row.id, this.nowSeconds)
    this.model.put(row)
  }

  #forgetGone(): void {
    for (const id of this.seen.keys()) if (!this.model.rows.has(id)) this.seen.delete(id)
  }

  #tags(): { name: Buffer; value: Buffer }[] {
    const tags = Array.from({ length: below(7) }, () => {
      const name = pick(names)
      const values = vocabulary[name] as readonly string[]
      return { name: Buffer.from(name), value: Buffer.from(values[skewed(values.length)] as string) }
    })
    if (chance(0.6)) tags.push({ name: Buffer.from('Unit'), value: Buffer.from(`${below(1000)}`) })
    if (chance(0.5)) tags.push({ name: Buffer.from('File-Id'), value: Buffer.from(uuid(this.#made)) })
    return tags
  }

  #parts(): RowInput {
    this.#made += 1
    const owner = skewed(people)
    return {
      id: idOfBytes(sha(`row ${this.#made} ${random()}`)),
      size: below(100_000),
      owner: key(owner),
      ownerAddress: address(owner),
      target: chance(0.5) ? Buffer.alloc(0) : address(skewed(people)),
      anchor: chance(0.5) ? Buffer.alloc(0) : Buffer.alloc(32, this.#made),
      tags: this.#tags(),
    }
  }

  #transaction(index: number): TransactionInput {
    const transfer = { format: 2, quantity: BigInt(below(1000)), reward: BigInt(below(1000)) }
    return {
      ...this.#parts(),
      ...transfer,
      index,
      dataRoot: Buffer.alloc(32, 1),
      weaveEnd: this.#made * 1000,
    }
  }

  #item(parentId: Id, at: number): ItemInput {
    const place = { rootItemOffset: 1000 * at, parentItemOffset: at, headerSize: 100 }
    return { ...this.#parts(), ...place, parentId, signatureType: 1 + below(4) }
  }

  /** Items of a bundle, some of them bundles themselves. */
  #items(rootId: Id, count: number): ItemInput[] {
    const items: ItemInput[] = []
    for (let at = 0; at < count; at += 1) {
      const isNested = items.length > 0 && chance(0.2)
      items.push(this.#item(isNested ? (items[skewed(items.length)] as ItemInput).id : rootId, at))
    }
    return items
  }

  /** A block: new transactions, and some that waited. */
  #grow(): IndexRequest[] {
    this.tip += 1
    const id = (height: number): string =>
      createHash('sha384').update(`block ${height} ${this.#forks}`).digest('base64url')
    const height = this.tip
    const previous = this.model.blocks.get(height - 1)?.id ?? id(height - 1)
    const about = { height, id: id(height), previous, timestamp: 1_700_000_000 + height }
    const waiting = this.#roots((row) => row.height === undefined && chance(0.3)).slice(0, 5)
    const inputs = [
      ...waiting.map(({ input }) => input as TransactionInput),
      ...Array.from({ length: below(8) }, () => this.#transaction(0)),
    ].map((input, index) => ({ ...input, index }))
    const block = { ...about, weaveSize: '77', transactionCount: inputs.length }
    this.model.blocks.set(height, block)
    for (const input of inputs) this.#put({ id: input.id, height, index: input.index, input })
    const root = inputs.at(-1)
    return [blockMessage(block, inputs), ...(root === undefined ? [] : this.#bundle(root.id, below(60)))]
  }

  #roots(wanted: (row: ModelRow) => boolean): ModelRow[] {
    return [...this.model.rows.values()].filter((row) => 'format' in row.input && wanted(row))
  }

  #bundle(rootId: Id, count: number): IndexRequest[] {
    return this.#listed(rootId, this.#items(rootId, count))
  }

  /** Items of a root that is known, at its place. */
  #listed(rootId: Id, items: readonly ItemInput[]): IndexRequest[] {
    const root = this.model.rows.get(rootId)
    if (root === undefined || items.length === 0) return []
    const { height, index } = root
    for (const input of ordered(items)) this.#put({ id: input.id, height, index, input })
    return [itemsMessage(rootId, items)]
  }

  /** A bundle that is opened long after its block. */
  #late(): IndexRequest[] {
    const roots = this.#roots(() => true)
    return roots.length === 0 ? [] : this.#bundle(pick(roots).id, 1 + below(30))
  }

  #pending(): IndexRequest[] {
    const transactions = ordered(Array.from({ length: 1 + below(4) }, () => this.#transaction(0)))
    for (const input of transactions) this.#put({ id: input.id, height: undefined, index: 0, input })
    return [{ kind: 'index-pending', transactions: packTransactions(transactions) }]
  }

  /** Items of a transaction that is not posted yet. */
  #promise(): IndexRequest[] {
    const rootId = idOfBytes(sha(`promised ${random()}`))
    const items = this.#items(rootId, 1 + below(8))
    for (const input of ordered(items)) this.#put({ id: input.id, height: undefined, index: 0, input })
    this.#promised.push({ rootId, items })
    return [itemsMessage(rootId, items, true)]
  }

  /** What was promised comes, in a bundle of the chain. */
  #promote(): IndexRequest[] {
    const roots = this.#roots(({ height }) => height !== undefined)
    const promised = this.#promised.splice(below(this.#promised.length), 1)[0]
    if (promised === undefined || roots.length === 0) return []
    return this.#listed(pick(roots).id, promised.items)
  }

  /** Items that are known come once more, in another bundle: before or behind the one where they are. */
  #again(): IndexRequest[] {
    const roots = this.#roots(() => true)
    const known = [...this.model.rows.values()].filter(({ input }) => 'parentId' in input)
    if (roots.length === 0 || known.length === 0) return []
    const rootId = pick(roots).id
    const from = below(known.length)
    const items = known
      .slice(from, from + 5)
      .map(({ input }) => ({ ...(input as ItemInput), parentId: rootId }))
    return this.#listed(rootId, items)
  }

  #fork(depth: number): IndexRequest[] {
    const fromHeight = Math.max(this.start, this.tip - depth + 1)
    this.tip = fromHeight - 1
    this.#forks += 1
    this.model.unwind(fromHeight)
    this.#forgetGone()
    return [{ kind: 'unwind', fromHeight }]
  }

  /** Transactions that wait too long; items wait on. */
  #expire(): IndexRequest[] {
    this.model.expire(false)
    this.#forgetGone()
    return [{ kind: 'expire-pending', beforeSeconds: this.nowSeconds + 1, itemsBeforeSeconds: 0 }]
  }
}

/** As messages are packed. */
function ordered<Input extends RowInput>(inputs: readonly Input[]): Input[] {
  return [...inputs].sort((one, other) => Buffer.compare(idBytes(one.id), idBytes(other.id)))
}

/** The UUID of a number. */
export function uuid(number: number): string {
  const hex = sha(`uuid ${number}`).toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    '-',
  )
}
