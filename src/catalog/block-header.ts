import { VarReader, VarWriter } from '../format/varbytes.js'
import type { Writable } from '../format/writable.js'

/**
 * Fields of a block's header that no query needs, but whoever rebuilds the chain from the index does. Absent: the node's JSON had
 * no such field (old blocks lack some). Amounts and difficulties are decimal text: some are far above 2^53.
 */
export interface BlockHeader {
  readonly nonce?: Uint8Array
  /** The proof-of-work hash, not the block's id. */
  readonly hash?: Uint8Array
  /** Bytes that the block added to the weave. */
  readonly blockSize?: string
  readonly difficulty?: string
  readonly cumulativeDifficulty?: string
  /** Seconds since 1970. */
  readonly lastRetarget?: string
  readonly rewardAddress?: Uint8Array
  readonly rewardPool?: string
  /** Dividend and divisor. */
  readonly rate?: readonly [string, string]
  readonly scheduledRate?: readonly [string, string]
  readonly hashListMerkle?: Uint8Array
  readonly walletList?: Uint8Array
  readonly txRoot?: Uint8Array
}

const texts = [
  'blockSize',
  'difficulty',
  'cumulativeDifficulty',
  'lastRetarget',
  'rewardPool',
] as const satisfies readonly (keyof BlockHeader)[]
const rates = ['rate', 'scheduledRate'] as const satisfies readonly (keyof BlockHeader)[]
const blobs = [
  'nonce',
  'hash',
  'rewardAddress',
  'hashListMerkle',
  'walletList',
  'txRoot',
] as const satisfies readonly (keyof BlockHeader)[]

const version = 1

/** The header as bytes: `version u8`, then of each field whether it is there (u8) and what it holds, in a fixed order. */
export function packBlockHeader(header: BlockHeader): Uint8Array {
  const out = new VarWriter()
  const field = (value: Uint8Array | undefined): void => {
    out.u8(value === undefined ? 0 : 1)
    if (value !== undefined) out.block(value)
  }
  const text = (value: string | undefined): void =>
    field(value === undefined ? undefined : Buffer.from(value, 'latin1'))
  out.u8(version)
  for (const name of texts) text(header[name])
  for (const name of rates) {
    text(header[name]?.[0])
    text(header[name]?.[1])
  }
  for (const name of blobs) field(header[name])
  return out.copy()
}

/** The header in these bytes, in views of them. Throws a RangeError on what `packBlockHeader` did not write. */
export function unpackBlockHeader(bytes: Uint8Array): BlockHeader {
  const read = new VarReader(bytes)
  const found = read.u8()
  if (found !== version) throw new RangeError(`a block header of version ${found}`)
  const field = (): Buffer | undefined => (read.u8() === 0 ? undefined : read.block())
  const text = (): string | undefined => field()?.toString('latin1')
  const header: Writable<BlockHeader> = {}
  for (const name of texts) {
    const value = text()
    if (value !== undefined) header[name] = value
  }
  for (const name of rates) {
    const [dividend, divisor] = [text(), text()]
    if (dividend !== undefined && divisor !== undefined) header[name] = [dividend, divisor]
  }
  for (const name of blobs) {
    const value = field()
    if (value !== undefined) header[name] = value
  }
  return header
}
