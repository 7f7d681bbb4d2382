import type { ChainOptions } from '../chain/remote-chain-options.js'
import { otherCalls } from './resources.js'
import type { Settings } from './thread-settings.js'

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
