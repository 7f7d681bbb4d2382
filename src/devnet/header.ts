import { createHash, randomBytes } from 'node:crypto'
import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import type { NodeBlockHeader } from './chain-store.js'

/** What a new block brings. */
export interface BlockContents {
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly txs: readonly Id[]
  /** Empty where the block has no data. */
  readonly txRoot: Uint8Array
  /** Bytes added to the weave, padding included. */
  readonly sizeBytes: number
  readonly rewardWinston: bigint
  /** Hash over the wallets after this block. */
  readonly wallets: string
}

type Words = {
  readonly [Field in keyof NodeBlockHeader as Field extends 'indep_hash'
    ? never
    : Field]: NodeBlockHeader[Field]
}

const difficulty =
  115_792_089_220_940_710_686_296_942_055_695_413_965_527_953_310_049_630_981_189_590_430_430_626_054_144n
const difficultyStep = 2_398_671n
const miner = encodeBase64url(createHash('sha256').update('devnet miner').digest())

/** The genesis block over a weave that begins with `weaveStart` bytes which are not stored. */
export function genesisHeader(weaveStart: number, timestamp: number): NodeBlockHeader {
  return seal({
    ...fixed(timestamp),
    previous_block: '',
    height: 0,
    txs: [],
    tx_root: '',
    wallet_list: digest384(''),
    reward_pool: '0',
    weave_size: String(weaveStart),
    block_size: '0',
    cumulative_diff: '0',
    hash_list_merkle: '',
  })
}

/** The header that follows `previous`, in the form nodes have used since height 812970 (fork 2.5). */
export function nextHeader(previous: NodeBlockHeader, contents: BlockContents): NodeBlockHeader {
  return seal({
    ...fixed(Math.max(contents.timestamp, previous.timestamp)),
    previous_block: previous.indep_hash,
    height: previous.height + 1,
    txs: contents.txs,
    tx_root: encodeBase64url(contents.txRoot),
    wallet_list: digest384(`${previous.wallet_list} ${contents.wallets}`),
    reward_pool: (BigInt(previous.reward_pool) + contents.rewardWinston).toString(),
    weave_size: String(Number(previous.weave_size) + contents.sizeBytes),
    block_size: String(contents.sizeBytes),
    cumulative_diff: (BigInt(previous.cumulative_diff) + difficultyStep).toString(),
    hash_list_merkle: digest384(`${previous.hash_list_merkle} ${previous.indep_hash}`),
  })
}

function fixed(timestamp: number) {
  return {
    usd_to_ar_rate: ['328', '17839'],
    scheduled_usd_to_ar_rate: ['328', '17839'],
    packing_2_5_threshold: '0',
    strict_data_split_threshold: '0',
    nonce: encodeBase64url(randomBytes(32)),
    timestamp,
    last_retarget: timestamp,
    diff: difficulty.toString(),
    reward_addr: miner,
    tags: [],
    poa: { option: '1', tx_path: '', data_path: '', chunk: '' },
  }
}

/** The block's hash over all its fields. It is no proof of work. */
function seal(words: Words): NodeBlockHeader {
  const indep_hash = digest384(JSON.stringify(words))
  const hash = encodeBase64url(createHash('sha256').update(indep_hash).digest())
  return { ...words, hash, indep_hash }
}

function digest384(words: string): string {
  return createHash('sha384').update(words).digest('base64url')
}
