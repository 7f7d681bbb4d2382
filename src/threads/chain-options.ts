import type { ChainOptions, ChunkGateways } from '../chain/remote-chain-options.js'
import { otherCalls } from './resources.js'
import type { Settings } from './thread-settings.js'

/** Whether the node of the chain runs in this program: coins cost nothing there, and it sends news of blocks. */
export function isEmbedded({ server }: Settings<'server'>): boolean {
  return server.network === 'devnet' && server.trustedNodeUrls === undefined
}

/** How nodes are queried. */
export function chainOptions(
  nodes: readonly string[],
  { retrieval, chunks }: Settings<'retrieval'> & Partial<Settings<'chunks'>>,
): ChainOptions {
  const chunkNodes = chunks?.preferredGetUrls
  return {
    nodes,
    ...(chunkNodes === undefined ? {} : { chunkNodes }),
    connectMs: 5000,
    headMs: retrieval.gatewayTimeoutMs,
    stallMs: retrieval.streamStallMs,
    // One connection for each call under way, because HTTP/1.1 without pipelining needs one for each parallel
    // request.
    connectionsMax: retrieval.chunkReadAhead + otherCalls,
    callsMax: retrieval.chunkReadAhead + otherCalls,
    waitingMax: 4096,
    attemptsMax: 4,
    coolMs: 1000,
    coolMaxMs: 60_000,
  }
}

/**
 * Whom content out of chunks is requested from beside nodes. Gateways that get a request for a chunk of a client pass it on to
 * nodes alone: so it cannot go round among them. `random` (from 0 to below 1) says which of them is the first one.
 */
export function chunkGateways(
  { chunks, peers }: Settings<'chunks' | 'peers'>,
  random = Math.random(),
): ChunkGateways | undefined {
  const { order } = chunks
  const all = peers.urls ?? []
  if (all.length === 0 || !order.includes('ar-io-network')) return undefined
  const first = Math.floor(random * all.length)
  const urls = [...all.slice(first), ...all.slice(0, first)]
  const place = !order.includes('arweave-network')
    ? 'alone'
    : order[0] === 'ar-io-network'
      ? 'before'
      : 'behind'
  return { urls, place, queriedMax: peers.candidatesMax }
}
