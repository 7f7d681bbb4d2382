import type { Address } from '../../actor/mailbox-address.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { IngestReply, IngestRequest } from '../../ingest/ingest-messages.js'
import type { ExportReply, ExportRequest } from '../../parquet/export-protocol.js'
import { done, malformedOrder, type Order, type OrderAnswer, type OrderCall } from './order.js'

/** The thread that writes the index also exports and prunes it. */
type Line = Address<IngestRequest | ExportRequest, IngestReply | ExportReply>

const pruneFields = ['indexedAtThreshold', 'startHeight', 'endHeight'] as const

/** Loaded with the first order: zod takes 6.7 MB of each edge thread, and most never get one. */
const shapes = () => import('./export-shapes.js')

/** Exports parts of the index as files for other databases, and prunes what the index no longer needs. */
export function exportOrders(line: Line): Order[] {
  const path = 'export-parquet'
  return [
    {
      method: 'POST',
      path,
      summary: 'Begins an export as Parquet',
      statuses: [200, 409, 503],
      act: (call) => begin(line, call),
    },
    {
      method: 'DELETE',
      path,
      summary: 'Ends the export',
      statuses: [200, 409, 503],
      act: () => cancel(line),
    },
    {
      method: 'GET',
      path: `${path}/status`,
      summary: 'How far the export is',
      statuses: [200, 503],
      act: () => state(line, undefined),
    },
    {
      method: 'GET',
      path: `${path}/status/`,
      rest: 'job',
      summary: 'How far an export is',
      statuses: [200, 404, 503],
      act: ({ rest }) => state(line, rest),
    },
    {
      method: 'POST',
      path: 'prune-stable-data-items',
      summary: 'Drops old items from the index',
      statuses: [200, 409, 503],
      act: (call) => prune(line, call),
    },
  ]
}

async function begin(line: Line, { body }: OrderCall): Promise<OrderAnswer> {
  const { exportShape } = await shapes()
  const read = exportShape.safeParse(body)
  if (!read.success || read.data.startHeight > read.data.endHeight) {
    return malformedOrder('Invalid or missing required parameters')
  }
  const reply = await line.ask({ export: 'begin', order: read.data })
  if (isRefusal(reply)) return refused(reply)
  if (reply.kind === 'export-begun') return done('Parquet export started', { jobId: reply.state.jobId })
  if (reply.kind !== 'export-runs') throw new Error('the exporter answered something else')
  const body409 = { error: 'An export is already in progress', currentStatus: reply.state }
  return { status: 409, body: body409 }
}

async function state(line: Line, jobId: string | undefined): Promise<OrderAnswer> {
  const reply = await line.ask({ export: 'state', ...(jobId === undefined ? {} : { jobId }) })
  if (isRefusal(reply)) return refused(reply)
  if (reply.kind !== 'export-state') throw new Error('the exporter answered something else')
  if (reply.state !== undefined) return { status: 200, body: reply.state }
  return jobId === undefined
    ? { status: 200, body: { status: 'not_started' } }
    : { status: 404, body: { error: 'Unknown or expired jobId' } }
}

/** Cancels the export and removes what was written. */
async function cancel(line: Line): Promise<OrderAnswer> {
  const reply = await line.ask({ export: 'cancel' })
  return isRefusal(reply) ? refused(reply) : done('Parquet export cancelled')
}

async function prune(line: Line, { body }: OrderCall): Promise<OrderAnswer> {
  const given = (body ?? {}) as Readonly<Record<string, unknown>>
  const { height } = await shapes()
  const bad = pruneFields.find((field) => !height.safeParse(given[field]).success)
  if (bad !== undefined) return malformedOrder(`Invalid ${bad} - must be a positive integer`)
  const [beforeSeconds, from, to] = pruneFields.map((field) => Number(given[field])) as [
    number,
    number,
    number,
  ]
  if (from > to) return malformedOrder('Invalid endHeight - must be a positive integer not below startHeight')
  const reply = await line.ask({ kind: 'prune', from, to, beforeSeconds })
  if (isRefusal(reply)) return refused(reply)
  if (reply.kind !== 'pruned') throw new Error('the index answered something else')
  return done('Stable data items pruned successfully', { pruned: reply.items })
}

function refused({ refused: why, message }: Refusal): OrderAnswer {
  if (why === 'malformed') return malformedOrder(message)
  return why === 'busy'
    ? { status: 409, body: { error: message } }
    : { status: 503, body: message, retryAfterSeconds: 1 }
}
