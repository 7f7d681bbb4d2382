import { channel } from 'node:diagnostics_channel'
import type { Exchange } from '../serving/request-exchange.js'

/** One step of a request for content. */
export interface RequestStep {
  /** Where its decision is made. `enter` is called by who runs it: mostly `Delivery`. */
  readonly file: string
  /** What it decides by. */
  readonly reads: string
  /** Whether it may wait for another thread. */
  readonly waits: boolean
  /** Steps that it may follow. */
  readonly after: readonly string[]
  /** Statuses with which the exchange may end in this step, beside 500 after a bug. None: it always goes on. */
  readonly answers: readonly number[]
}

/**
 * The steps of a request for content, in their order. A request for a path of a manifest passes `locate` and `guard` for the
 * manifest, then for the content that the manifest names. Most other routes have `route` only, and end with any status; files of
 * bands have `plan` next.
 */
export const steps = {
  route: {
    file: 'src/routes/edge-handler.ts',
    reads: 'host, path, method; where a page runs: Sec-Fetch-Dest, Service-Worker',
    waits: false,
    // Again where the root of a host has nothing at this path, and a route has.
    after: ['name', 'manifest'],
    answers: [204, 400, 403, 404, 405, 451, 503],
  },
  name: {
    file: 'src/routes/name-handler.ts',
    reads: 'the name of the host, its record, the block list',
    waits: true,
    after: ['route'],
    answers: [302, 402, 404, 451, 499, 502, 503, 504],
  },
  locate: {
    file: 'src/gateway/locator.ts',
    reads: 'id; prepared entries, the catalog, the store',
    waits: false,
    after: ['route', 'name', 'locate', 'check', 'manifest'],
    // By the digest of content that is not here.
    answers: [404],
  },
  guard: {
    file: 'src/gateway/guard.ts',
    reads: 'id, bundle and digest; the block list',
    waits: false,
    after: ['locate'],
    answers: [451, 503],
  },
  check: {
    file: 'src/gateway/locator.ts',
    reads: 'the bytes of the file, hashed by the source thread',
    waits: true,
    after: ['locate', 'guard', 'manifest'],
    answers: [499],
  },
  manifest: {
    file: 'src/routes/manifest-handler.ts',
    reads: 'the path behind the id; the packed manifest',
    waits: true,
    after: ['guard', 'bring', 'locate'],
    answers: [301, 400, 404, 413, 499, 502, 503, 504],
  },
  bring: {
    file: 'src/source/reading/transfer-client.ts',
    reads: 'id, hints, ranges; the sources in order, after the first token was taken',
    waits: true,
    after: ['locate', 'guard', 'manifest', 'plan'],
    answers: [400, 402, 404, 409, 416, 429, 451, 499, 502, 503, 504],
  },
  plan: {
    file: 'src/gateway/plan.ts',
    reads: 'conditions, ranges, HEAD; size, type and tag of the content',
    waits: false,
    after: ['route', 'guard', 'bring', 'plan'],
    answers: [400, 412, 416],
  },
  admit: {
    file: 'src/gateway/admit.ts',
    reads: 'client, resource, planned bytes; buckets, payments',
    waits: true,
    after: ['plan'],
    answers: [400, 402, 409, 429, 499, 503],
  },
  head: {
    file: 'src/gateway/answer-heads.ts',
    reads: 'what is known of the content, the tip of the chain, the key',
    waits: false,
    after: ['admit'],
    answers: [],
  },
  send: {
    file: 'src/gateway/send.ts',
    reads: 'the bytes, as fast as the socket takes them',
    waits: false,
    after: ['head'],
    answers: [200, 206, 304, 404],
  },
} as const satisfies Readonly<Record<string, RequestStep>>

export type StepName = keyof typeof steps

/** What a subscriber of the channel gets. */
export interface EnteredStep {
  readonly exchange: Exchange
  readonly name: StepName
}

/** Each step is published here where somebody subscribed, such as tests and tracers. */
export const stepChannel = channel('sluice:step')

/** Called at the beginning of each step. */
export function enter(exchange: Exchange, name: StepName): void {
  if (stepChannel.hasSubscribers) stepChannel.publish({ exchange, name } satisfies EnteredStep)
}
