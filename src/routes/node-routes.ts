import type { Meters } from '../actor/meter.js'
import type { Tip } from '../actor/shared.js'
import type { Admission } from '../admission/admission-port.js'
import { Broadcast, type BroadcastOptions } from '../chain/broadcast.js'
import { ChunkFinder, type ChunkFinderOptions } from '../chain/chunk-finder.js'
import { readOffset } from '../chain/node-answers.js'
import { Relay } from '../chain/relay.js'
import { RemoteChain } from '../chain/remote-chain.js'
import type { ChainOptions } from '../chain/remote-chain-options.js'
import type { OffsetIndex } from '../chain/span.js'
import { parseId } from '../format/id.js'
import type { Transfers } from '../gateway/gateway-parts.js'
import type { Guard } from '../gateway/guard.js'
import type { ClientOf } from '../serving/in-slot.js'
import type { Route } from '../serving/route.js'
import type { StatementParts } from '../serving/statements.js'
import { chunkPostRoute } from './chunk-post.js'
import { chunkRoute } from './chunk-routes.js'
import { DigestLearner } from './digest-learner.js'
import { passthroughRoutes } from './passthrough.js'
import { TransactionJudge } from './transaction-judge.js'
import { transactionPostRoute } from './transaction-post.js'

export interface NodeRouteParts extends StatementParts {
  /**
   * Nodes, called by this thread itself for chunks and forwarded requests. The source thread would only add delay, because a
   * chunk is sent and then dropped.
   */
  readonly chain: ChainOptions
  readonly chunks: {
    readonly finder: ChunkFinderOptions
    readonly broadcast: BroadcastOptions
    /** Posted data is checked, but not passed on to nodes. */
    readonly dryRun: boolean
    /** Bytes for which tokens are taken before a chunk in JSON is found. */
    readonly pricedBytes: number
    /** Larger transactions are not transferred to learn their digest for a chunk. */
    readonly learnMaxBytes: number
  }
  readonly meters: Meters
  /** Seconds of caching for answers that no fork can change. */
  readonly settledSeconds: number
  readonly tip: Tip
  /** Knows offsets of indexed transactions. */
  readonly index?: OffsetIndex
  /** Absent: nothing is blocked. `transfers` learns digests where something is blocked by its hash. */
  readonly blocking?: { readonly guard: Guard; readonly transfers: Pick<Transfers, 'digestOf'> }
  readonly admission?: Admission
  /** Whose share of what is scarce a request uses. */
  readonly clientOf: ClientOf
}

/** Routes that clients of nodes use, and a function that closes their connections. */
export interface NodeRoutes {
  readonly routes: readonly Route[]
  /** This thread's line to nodes. */
  readonly chain: RemoteChain
  close(): Promise<void>
}

/** Numbers of one edge thread; one client has a quarter of each at most. */
const bounds = {
  /** 400 KiB each: 100 MiB. */
  chunkAnswersMax: 256,
  /** About 1 MiB each while they are handled. */
  chunkPostsMax: 128,
  /** 64 KiB each. */
  postsMax: 512,
  /** Up to 45 MiB each. */
  largePostsMax: 8,
  keptBytes: 16 << 20,
  /** Transfers only to learn a digest. */
  learningMax: 8,
  learningRestMs: 5000,
  /** Half of the connections to nodes at most are held by slow readers. */
  relaysMax: 32,
}

const offsetPath = /^\/tx\/([^/]+)\/offset$/

/** Builds them, with connections of this thread's own. */
export function nodeRoutes(parts: NodeRouteParts): NodeRoutes {
  const { blocking, ...rest } = parts
  const { clientOf, clock, log, meters, settledSeconds, tip } = parts
  const guard = blocking?.guard
  const { dryRun } = parts.chunks
  const chain = new RemoteChain(parts.chain, clock)
  const relay = new Relay(parts.chain, clock)
  const judge = new TransactionJudge(bounds.largePostsMax, log)
  const broadcast = new Broadcast(parts.chain, parts.chunks.broadcast, clock)
  const finderOptions = {
    ...parts.chunks.finder,
    mustName: () => guard?.isOn === true,
    growths: () => tip.growths,
  }
  const finder = new ChunkFinder(chain, clock, finderOptions, parts.index)
  const learning = {
    clock,
    waitMs: parts.chunks.finder.deadlineMs,
    flightsMax: bounds.learningMax,
    sizeMaxBytes: parts.chunks.learnMaxBytes,
    restMs: bounds.learningRestMs,
  }
  const learner = blocking && new DigestLearner({ ...blocking, ...learning })
  const onAnswer = (path: string, body: Buffer): void => {
    const id = parseId(offsetPath.exec(path)?.[1] ?? '')
    const place = id === undefined ? undefined : readOffset(body.toString('utf8'))
    if (id === undefined || place === undefined) return
    finder.hear(id, place)
    tip.grew()
  }
  return {
    chain,
    routes: [
      chunkRoute({
        ...rest,
        finder,
        settledSeconds,
        answersMax: bounds.chunkAnswersMax,
        ...(learner === undefined || guard === undefined ? {} : { blocking: { guard, learner } }),
        pricedBytes: parts.chunks.pricedBytes,
      }),
      chunkPostRoute({ finder, broadcast, clientOf, meters, postsMax: bounds.chunkPostsMax, dryRun }),
      transactionPostRoute({ relay, judge, clientOf, log, ...bounds, dryRun }),
      ...passthroughRoutes({
        relay,
        clientOf,
        clock,
        log,
        ...bounds,
        onAnswer,
        ...(guard === undefined ? {} : { guard }),
        ...(parts.admission === undefined ? {} : { admission: parts.admission }),
      }),
    ],
    async close() {
      await Promise.all([chain.close(), relay.close(), broadcast.close(), judge.close()])
    },
  }
}
