import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import { VarReader, VarWriter } from '../format/varbytes.js'
import type { BlockInput } from './index-protocol.js'

const noHeader = Buffer.alloc(0)

/** A block as the index keeps it. */
export type BlockRecord = BlockInput

/** Version 2 added the packed header; blocks of version 1 have none. */
const recordVersion = 2

/** The 4 bytes of a height, in order. */
export function heightKey(height: number): Buffer {
  const key = Buffer.allocUnsafe(4)
  key.writeUInt32BE(height)
  return key
}

/**
 * Bytes of a block's id. Throws a RangeError on what is not base64url: blocks are checked before they come
 * here.
 */
export function blockIdBytes(id: string): Uint8Array {
  const bytes = decodeBase64url(id)
  if (bytes === undefined || bytes.length > 64) throw new RangeError(`${id} is no block id`)
  return bytes
}

/** Record: `version u8, timestamp, weave size, transaction count, id, previous, header` (empty: not known). */
export function encodeBlock(block: BlockRecord): Uint8Array {
  const out = new VarWriter()
  out.u8(recordVersion)
  out.uint(block.timestamp)
  out.block(Buffer.from(block.weaveSize))
  out.uint(block.transactionCount)
  out.block(blockIdBytes(block.id))
  out.block(blockIdBytes(block.previous))
  out.block(block.header ?? noHeader)
  return out.copy()
}

/** The block with this record. Throws a RangeError on bytes that no version of this program wrote. */
export function decodeBlock(height: number, record: Uint8Array): BlockRecord {
  const read = new VarReader(record)
  const version = read.u8()
  if (version !== 1 && version !== recordVersion) throw new RangeError(`a block record of version ${version}`)
  const block = {
    height,
    timestamp: read.uint(),
    weaveSize: read.block().toString('latin1'),
    transactionCount: read.uint(),
    id: encodeBase64url(read.block()),
    previous: encodeBase64url(read.block()),
  }
  const header = version === 1 ? noHeader : read.block()
  return header.length === 0 ? block : { ...block, header }
}
