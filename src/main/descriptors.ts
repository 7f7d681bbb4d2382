import { readFileSync } from 'node:fs'
import type { Config } from '../../config/read.js'
import { type Descriptors, otherCalls } from '../threads/resources.js'

/** Databases, pipes between threads, event loops, the log; and what a command or a look at the program needs beside it. */
const baseCount = 80
/** More of the same for each edge thread. */
const threadCount = 8
/** Threads besides the edges that ask nodes. */
const askers = 2
/** Peers, trackers and files of BitTorrent, where it is on. */
const swarmCount = 128
/** Fewest sockets with which the start is allowed. */
const socketsMin = 16

/** What `ulimit -n` says, as the kernel has it for this process; undefined where it is unknown (no /proc) or without a bound. */
export function descriptorLimit(): number | undefined {
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return undefined
  }
  const soft = /^Max open files\s+(\d+)/m.exec(text)?.[1]
  return soft === undefined ? undefined : Number(soft)
}

/**
 * Shares out `limit` descriptors: what the program itself needs comes first, the rest is for clients. A request may
 * need a second one for a file that grows while it is read, so a socket counts twice. Throws an error for the
 * operator where the limit is too low.
 */
export function shareDescriptors(
  { server, retrieval, usesSwarm }: DescriptorConfig,
  limit: number,
): Descriptors {
  const share = (parts: number, least: number, most: number): number =>
    Math.max(least, Math.min(most, Math.floor(limit / parts)))
  const edges = server.edgeThreads
  const filesMax = share(8 * edges, 16, 4096)
  const manifestsMax = share(32 * edges, 8, 256)
  const upstreamMax = share(16, 8, 256)
  const callsMax = share(64, otherCalls + 1, retrieval.chunkReadAhead + otherCalls)
  const fetchesMax = share(16, 8, retrieval.fetchesMax)
  const own = baseCount + threadCount * edges + (usesSwarm ? swarmCount : 0)
  const ofEdges = (filesMax + manifestsMax + callsMax) * edges
  const kept = own + ofEdges + upstreamMax + callsMax * askers + 2 * fetchesMax
  const spare = limit - kept - 2 * socketsMin
  const sentFilesMax = Math.max(0, Math.min(filesMax, Math.floor(spare / 4)))
  const socketsMax = Math.floor((limit - kept - sentFilesMax) / 2)
  if (socketsMax < socketsMin) {
    const needed = kept + 2 * socketsMin
    throw new Error(
      `this process may have ${limit} open files (ulimit -n), and needs ${needed} at least: allow it more, ` +
        'LimitNOFILE= in a systemd unit, --ulimit nofile= with a container',
    )
  }
  return { socketsMax, filesMax, sentFilesMax, manifestsMax, upstreamMax, callsMax, fetchesMax }
}

/** The settings that it takes to share them out. */
export interface DescriptorConfig {
  readonly server: { readonly edgeThreads: number }
  readonly retrieval: { readonly fetchesMax: number; readonly chunkReadAhead: number }
  readonly usesSwarm: boolean
}

/**
 * The settings with `server.requestsMax`, `retrieval.fetchesMax` and `retrieval.chunkReadAhead` reduced to what the descriptors
 * of this process allow. All threads are started with the result.
 */
export function withinDescriptors(config: Config, shares: Descriptors | undefined): Config {
  if (shares === undefined) return config
  const { fetchesMax, socketsMax } = shares
  const { server, retrieval } = config
  const chunkReadAhead = shares.callsMax - otherCalls
  // Who only takes its time over an answer cannot be made to make room: not all sockets may be there at once.
  const requests = Math.max(socketsMin, Math.floor((socketsMax * 3) / (4 * server.edgeThreads)))
  return {
    ...config,
    server: { ...server, requestsMax: Math.min(server.requestsMax, requests) },
    retrieval: { ...retrieval, fetchesMax, chunkReadAhead },
  }
}
