import { decodeBase64url, encodeBase64url } from '../../format/base64url.js'
import { ClientError } from '../errors.js'
import { agreed } from './agreement.js'
import { type Finding, type Gateways, untrue } from './gateways.js'

/** The block that a transaction lies in: the root over its transactions' data, and which bytes of the weave are its own. */
export interface AgreedBlock {
  readonly height: number
  /** `indep_hash`, 64 characters of base64url. */
  readonly hash: string
  readonly txRoot: Uint8Array
  /** Bytes of the weave before this block. */
  readonly before: number
  readonly sizeBytes: number
}

/** A block, and how many gateways agree on it, of those that answered. */
export interface BelievedBlock extends AgreedBlock {
  readonly by: string
}

/**
 * The block of a transaction, by the agreement of at least `quorum` gateways. Each gateway states the block that has the
 * transaction, and gives the header of that block. Rejects with `not-found` where it is in no block yet.
 */
export async function agreedBlock(
  gateways: Gateways,
  id: string,
  quorum: number,
  onFinding?: (finding: Finding) => void,
  signal?: AbortSignal,
): Promise<BelievedBlock> {
  const { value, by, of } = await agreed(gateways, {
    about: `the block of ${id}`,
    quorum,
    onFinding,
    ask: async (gateway) => {
      try {
        return await askOne(gateways, gateway, id, signal)
      } catch (error) {
        if (error instanceof ClientError && error.code === 'untrue') onFinding?.({ gateway, error })
        throw error
      }
    },
    textOf: ({ height, hash, txRoot, before, sizeBytes }) =>
      `${hash} (height ${height}, root ${encodeBase64url(txRoot)}, bytes ${before} to ${before + sizeBytes})`,
  })
  return { ...value, by: `${by} of ${of}` }
}

async function askOne(
  gateways: Gateways,
  gateway: string,
  id: string,
  signal: AbortSignal | undefined,
): Promise<AgreedBlock> {
  // Nodes answer 202 and a word where it waits for its block.
  const answer = await gateways.get(`${gateway}/tx/${id}/status`, {}, signal, [200, 202])
  if (answer.status === 202) {
    await answer.body?.cancel()
    throw new ClientError('not-found', `${id} is in no block yet`, 'ask again later')
  }
  const { block_height: height, block_indep_hash: hash } = await gateways.json(answer, signal)
  if (typeof height !== 'number' || typeof hash !== 'string')
    throw untrue(`${gateway}: the status of ${id} names no block`)
  const header = await gateways.json(
    await gateways.get(`${gateway}/block/hash/${encodeURIComponent(hash)}`, {}, signal),
    signal,
  )
  const ids: readonly unknown[] = Array.isArray(header.txs) ? header.txs : []
  if (header.indep_hash !== hash || header.height !== height || !ids.includes(id))
    throw untrue(`${gateway}: the block ${hash} is not the one that has ${id}`)
  const [sizeBytes, weaveSize] = [Number(header.block_size), Number(header.weave_size)]
  const txRoot = decodeBase64url(String(header.tx_root))
  const before = weaveSize - sizeBytes
  if (txRoot?.length !== 32 || !Number.isSafeInteger(weaveSize) || !(sizeBytes > 0) || !(before >= 0))
    throw untrue(`${gateway}: the block ${hash} has no data`)
  return { height, hash, txRoot, before, sizeBytes }
}
