import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { sha256 } from '../../src/proof/digest.js'
import { blockMessage, itemsMessage, openHouse } from './index-model.js'

const owner = Buffer.alloc(512, 3)
const common = {
  owner,
  ownerAddress: sha256(owner),
  target: Buffer.alloc(0),
  anchor: Buffer.alloc(0),
  size: 1000,
  tags: [],
}
const transfer = { format: 2, quantity: 0n, reward: 0n, dataRoot: Buffer.alloc(32), weaveEnd: 0 }

function transactionOf(id: Id): TransactionInput {
  return { ...common, ...transfer, id, index: 0 }
}

function itemOf(id: Id, parentId: Id): ItemInput {
  return { ...common, id, parentId, rootItemOffset: 100, parentItemOffset: 100, headerSize: 5 }
}

function block(height: number, root: Id) {
  const idAt = (at: number): string => Buffer.alloc(48, at).toString('base64url')
  const about = { height, id: idAt(height), previous: idAt(height - 1), timestamp: 1_700_000_000 }
  return blockMessage({ ...about, weaveSize: '0', transactionCount: 1 }, [transactionOf(root)])
}

t.test('an item whose earlier place is taken by an id that starts alike stays where it is', async (t) => {
  const house = openHouse()
  const [early, late] = [idOfBytes(randomBytes(32)), idOfBytes(randomBytes(32))]
  const start = randomBytes(9)
  const [one, other] = [0, 1].map(() => idOfBytes(Buffer.concat([start, randomBytes(23)]))) as [Id, Id]
  await house.apply([block(7, early), block(8, late)])
  await house.apply([itemsMessage(early, [itemOf(one, early)]), itemsMessage(late, [itemOf(other, late)])])
  t.equal(house.index.row(idBytes(other))?.height, 8)
  await house.apply([itemsMessage(early, [itemOf(other, early)])])
  t.equal(house.index.row(idBytes(one))?.height, 7, 'the place is still taken')
  t.equal(house.index.row(idBytes(other))?.height, 8, 'and nothing is lost')
  await house.close()
})
