import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { rowAttributes } from '../../src/catalog/indexed.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { sha256 } from '../../src/proof/digest.js'
import type { Environment } from '../../src/store/lmdb.js'
import { type CountedReads, countedReads } from '../upload/counted-reads.js'
import { blockMessage, itemsMessage, openHouse } from './index-model.js'

const depth = 60
const height = 7
const newId = (): Id => idOfBytes(randomBytes(32))
const owner = Buffer.alloc(512, 3)
const common = {
  owner,
  ownerAddress: sha256(owner),
  target: Buffer.alloc(0),
  anchor: Buffer.alloc(0),
  size: 1000,
  tags: [],
}

function block(transactions: readonly TransactionInput[]) {
  const [id, previous] = [0, 1].map((at) => Buffer.alloc(48, at).toString('base64url')) as [string, string]
  const about = { height, id, previous, timestamp: 1_700_000_000, weaveSize: '0', transactionCount: 1 }
  return blockMessage(about, transactions)
}

t.test('the bundles around an item are looked up once, and again when the index has changed', async (t) => {
  let counting: CountedReads | undefined
  const read = (environment: Environment): Environment => {
    counting = countedReads(environment)
    return counting.environment
  }
  const house = openHouse(undefined, read)
  const { index } = house
  const root = newId()
  const transfer = { format: 2, quantity: 0n, reward: 0n, dataRoot: Buffer.alloc(32), weaveEnd: 0 }
  await house.apply([block([{ ...common, ...transfer, id: root, index: 0 }])])
  const ids = [root]
  const items: ItemInput[] = []
  for (let at = 0; at < depth; at += 1) {
    const place = { rootItemOffset: at * 10, parentItemOffset: 10, headerSize: 5 }
    items.push({ ...common, ...place, id: newId(), parentId: ids.at(-1) as Id })
    ids.push(items.at(-1)?.id as Id)
  }
  await house.apply([itemsMessage(root, items)])
  const reads = (id: Id): number => {
    const before = counting?.reads ?? 0
    const row = index.row(idBytes(id))
    const path = row && rowAttributes(index, row).place?.path
    t.same(path, ids.slice(0, ids.indexOf(id)))
    return (counting?.reads ?? 0) - before
  }
  const deepest = ids.at(-1) as Id
  const first = reads(deepest)
  t.ok(first > depth, `${first} reads`)
  t.ok(reads(deepest) < 30, 'the same again')
  t.ok(reads(ids.at(-2) as Id) < 30, 'and its neighbours')
  await house.apply([{ kind: 'unwind', fromHeight: height }])
  t.equal(index.row(idBytes(deepest)), undefined)
  const next = idOfBytes(sha256(Buffer.from('another root')))
  await house.apply([block([{ ...common, ...transfer, id: next, index: 0 }])])
  const moved = items.map((item, at) => (at === 0 ? { ...item, parentId: next } : item))
  await house.apply([itemsMessage(next, moved)])
  ids[0] = next
  t.ok(reads(deepest) > depth)
  await house.close()
})
