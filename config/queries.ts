import { availableParallelism } from 'node:os'
import { whole } from './setting.js'

/** How much queries to /graphql may take: of a request, of a client, of this machine. */
export const queries = {
  threads: whole({
    env: 'GRAPHQL_THREADS',
    default: Math.max(1, Math.min(Math.floor(availableParallelism() / 2), 16)),
    min: 1,
    max: 64,
    why: 'Threads that answer queries, beside those that serve sockets, which go first.',
  }),
  waitingMax: whole({
    env: 'GRAPHQL_QUEUE_MAX',
    default: 256,
    min: 1,
    max: 4096,
    why: 'Queries that wait for one thread at most; more are answered 503 with Retry-After.',
  }),
  clientMax: whole({
    env: 'GRAPHQL_CLIENT_QUEUE_MAX',
    default: 64,
    min: 1,
    max: 4096,
    why: 'Of those, queries of one client address. Of those that wait, the client that has used least is next.',
  }),
  waitMs: whole({
    env: 'GRAPHQL_QUEUE_WAIT_MS',
    default: 15_000,
    min: 10,
    max: 600_000,
    why: 'A query that waited so long for its turn is answered 503.',
  }),
  timeMs: whole({
    env: 'GRAPHQL_CPU_MS',
    default: 250,
    min: 1,
    max: 60_000,
    why: 'Processor time of one request, a batch is one. Pages end early then, and their cursors go on from there.',
  }),
  wallMs: whole({
    env: 'GRAPHQL_TIME_MS',
    default: 5000,
    min: 10,
    max: 600_000,
    why: 'The same by the clock: an index that is not in memory is read from the disk.',
  }),
  stepsMax: whole({
    env: 'GRAPHQL_STEPS_MAX',
    default: 50_000,
    min: 1,
    max: 2 ** 31,
    why: 'Look-ups in the index of one request.',
  }),
  pageMax: whole({
    env: 'GRAPHQL_PAGE_MAX',
    default: 1000,
    min: 1,
    max: 10_000,
    why: 'Rows of a page; larger pages are cut down to this.',
  }),
  valuesMax: whole({
    env: 'GRAPHQL_VALUES_MAX',
    default: 2500,
    min: 1,
    max: 100_000,
    why: 'Values in all filters of one request together: ids, addresses, values of tags.',
  }),
  rootsMax: whole({
    env: 'GRAPHQL_ROOTS_MAX',
    default: 50,
    min: 1,
    max: 500,
    why: 'Selections of one query, as several of transactions under names of their own.',
  }),
  batchMax: whole({
    env: 'GRAPHQL_BATCH_MAX',
    default: 10,
    min: 1,
    max: 100,
    why: 'Queries of one batch, which share what one request may use.',
  }),
  answerMaxBytes: whole({
    env: 'GRAPHQL_ANSWER_MAX_BYTES',
    default: 16_777_216,
    min: 65_536,
    max: 268_435_456,
    why: 'Of the answer to one request; a larger one is an error that says so. Pages of transactions end at half of it.',
  }),
  waitingMaxBytes: whole({
    env: 'GRAPHQL_WAITING_MAX_BYTES',
    default: 67_108_864,
    min: 65_536,
    max: 4_294_967_296,
    why: 'Of all answers of one thread that wait for signatures and keys; above it the largest is given without them.',
  }),
}
