import { openIndexTables, openSegments, segmentLedger } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { RowBatch } from '../../src/index/row-batch.js'
import { SegmentKeeper } from '../../src/index/segment-keeper.js'
import { sha256 } from '../../src/proof/digest.js'
import { blockMessage, openHouse } from '../catalog/index-model.js'

export const segmentCount = 20
const rowsEach = 50
export const rowCount = segmentCount * rowsEach
export const tagCount = 16

/** Bytes that depend on a name. */
export function bytesOf(name: string, size = 32): Buffer {
  const start = sha256(Buffer.from(name))
  return Buffer.alloc(size, start)
}

/** The id of the block at a height. */
export const idText = (height: number): string => bytesOf(`block ${height}`, 48).toString('base64url')

/**
 * A catalog with many segments, one for each block; gives its path. Each row has an owner of its own but for one in four, whose
 * key is in the first segment. No row has a signature.
 */
export async function manySegments(): Promise<string> {
  const house = openHouse()
  for (let height = 0; height < segmentCount; height += 1) {
    const block = { height, id: idText(height), previous: idText(height - 1), timestamp: 1_700_000_000 }
    await house.apply([blockMessage({ ...block, weaveSize: '0', transactionCount: rowsEach }, [])])
  }
  await house.close()
  const { environment } = openCatalogTables(house.path)
  const tables = openIndexTables(environment)
  const files = openSegments(environment, tables.indexMeta)
  const keeper = new SegmentKeeper(files, segmentLedger(tables), {
    segmentsAlike: segmentCount + 1,
    levelMax: 0,
  })
  for (let height = 0; height < segmentCount; height += 1) keeper.add(batchAt(height))
  await environment.close()
  return house.path
}

function batchAt(height: number): RowBatch {
  const batch = new RowBatch()
  for (let index = 0; index < rowsEach; index += 1) {
    const isBusy = index % 4 === 0
    const key = bytesOf(isBusy ? 'busy' : `key ${height} ${index}`, 512)
    const owner = sha256(key)
    if (!isBusy || height === 0) batch.addOwnerKey(owner, key)
    batch.add({
      height,
      index,
      isItem: false,
      id: bytesOf(`row ${height} ${index}`),
      seenSeconds: 1_700_000_000,
      size: 1000,
      // Every third has a key that no row brought.
      owner: index % 3 === 0 ? bytesOf(`unknown ${height} ${index}`) : owner,
      recipient: bytesOf('recipient'),
      anchor: Buffer.alloc(0),
      tags: Array.from({ length: tagCount }, (_, at) => ({
        name: Buffer.from(`Name-${at}`),
        value: Buffer.from(`${index % 7}`),
      })),
      signatureType: undefined,
      signature: undefined,
      place: undefined,
      transfer: { format: 2, quantity: 0n, reward: 0n, dataRoot: Buffer.alloc(32), weaveEnd: 0 },
      isUnjudged: false,
    })
  }
  return batch
}
