import { z } from 'zod'
import type { Address } from '../../actor/address.js'
import type { Clock } from '../../actor/clock.js'
import type { Following, Tip } from '../../actor/shared.js'
import type { ExportReply, ExportRequest } from '../../bands/export-protocol.js'
import { Effort } from '../../catalog/effort.js'
import type { ItemInput } from '../../catalog/index-protocol.js'
import type { ChainIndex } from '../../catalog/index-reader.js'
import { packItems } from '../../catalog/pack.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/protocol.js'
import { decodeBase64url } from '../../format/base64url.js'
import { idBytes, idOfBytes, parseId } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { IngestReply, IngestRequest } from '../../ingest/protocol.js'
import { sha256 } from '../../proof/digest.js'
import { type Asked, done, isTold, type Order, readBody, type Told, wrong } from './order.js'

export interface IndexOrderParts {
  readonly ingest: Address<IngestRequest | ExportRequest, IngestReply | ExportReply>
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly index: ChainIndex
  readonly tip: Tip
  /** Blocks at the end of the chain that a fork may still take away. */
  readonly forkDepth: number
  readonly following: Following
  readonly clock: Clock
}

/** Headers of items announced in one go; 10 MB hold about so many. */
const itemsMax = 10_000
const itemsBodyMaxBytes = 10_000_000

const object = { error: 'Must provide a JSON object' }
const id = z.string({ error: "Must provide 'id'" }).transform((text, context) => {
  const read = parseId(text)
  if (read !== undefined) return read
  context.addIssue({ code: 'custom', message: "Must provide 'id'" })
  return z.NEVER
})
const transaction = z.object({ id }, object)
const bundle = z.object(
  { id, bypassFilter: z.boolean({ error: "'bypassFilter' must be a boolean" }).default(true) },
  object,
)

/** Base64url, as bytes. */
const bytes = (minBytes: number, maxBytes: number) =>
  z.string().transform((text, context) => {
    const read = decodeBase64url(text)
    if (read !== undefined && read.length >= minBytes && read.length <= maxBytes) return read
    context.addIssue({ code: 'custom', message: 'Must provide array of data item headers' })
    return z.NEVER
  })
const item = z.object({
  id: bytes(32, 32),
  owner: bytes(1, 2048),
  signature: bytes(1, 2048),
  data_size: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  tags: z
    .array(z.object({ name: bytes(0, 1024), value: bytes(0, 3072) }))
    .max(128)
    .default([]),
  target: bytes(0, 32).optional(),
  anchor: bytes(0, 32).optional(),
})
const items = z.array(item).max(itemsMax)

/** Nobody can say yet which bundle they will lie in. */
const nowhere = idOfBytes(Buffer.alloc(32))

/** What an operator may ask of the index. */
export function indexOrders(parts: IndexOrderParts): Order[] {
  return [
    { method: 'GET', path: 'debug', act: () => ({ status: 200, body: debug(parts) }) },
    { method: 'POST', path: 'queue-tx', act: (asked) => queueTransaction(parts, asked) },
    { method: 'POST', path: 'queue-bundle', act: (asked) => queueBundle(parts, asked) },
    {
      method: 'POST',
      path: 'queue-data-item',
      bodyMaxBytes: itemsBodyMaxBytes,
      act: (asked) => queueItems(parts, asked),
    },
    { method: 'GET', path: 'bundle-status/', act: (asked) => bundleStatus(parts, asked) },
  ]
}

async function queueTransaction({ ingest }: IndexOrderParts, { body }: Asked): Promise<Told> {
  const read = readBody(transaction, body)
  if (isTold(read)) return read
  const reply = await ingest.ask({ kind: 'queue-transaction', id: read.id })
  return isRefusal(reply) ? full(reply) : done('TX queued')
}

async function queueBundle(parts: IndexOrderParts, asked: Asked): Promise<Told> {
  const read = readBody(bundle, asked.body)
  if (isTold(read)) return read
  if (!read.bypassFilter) return queueTransaction(parts, asked)
  const reply = await parts.ingest.ask({ kind: 'queue-bundle', id: read.id })
  return isRefusal(reply) ? full(reply) : done('Bundle queued')
}

function full({ refused, message }: Refusal): Told {
  return { status: refused === 'busy' ? 429 : 503, body: message, retryAfterSeconds: 1 }
}

/** Announced items stand in the index as pending, in no bundle, until their bundle comes; unseen for days they go. */
async function queueItems({ keeper }: IndexOrderParts, { body }: Asked): Promise<Told> {
  if (!Array.isArray(body)) return wrong('Must provide array of data item headers')
  if (body.length > itemsMax) return wrong(`Too many data item headers: ${itemsMax} at most`)
  const read = items.safeParse(body)
  if (!read.success) return wrong('Must provide array of data item headers')
  const rows = read.data.map((header): ItemInput => {
    const { owner, signature, tags, target, anchor } = header
    const none = new Uint8Array(0)
    return {
      ...{ owner, signature, tags, id: idOfBytes(header.id), size: header.data_size },
      ...{ ownerAddress: sha256(owner), target: target ?? none, anchor: anchor ?? none },
      ...{ parentId: nowhere, rootItemOffset: 0, parentItemOffset: 0, headerSize: 0 },
    }
  })
  const words: CatalogRequest = {
    kind: 'index-items',
    rootId: nowhere,
    items: packItems(rows),
    optimistic: true,
  }
  const reply = await keeper.ask(words)
  if (!isRefusal(reply)) return done('Data item(s) queued')
  return { status: 503, body: reply.message, retryAfterSeconds: 1 }
}

async function bundleStatus({ ingest, index, clock }: IndexOrderParts, { rest }: Asked): Promise<Told> {
  const asked = parseId(rest)
  if (asked === undefined) return wrong('Must provide a valid bundle id')
  const reply = await ingest.ask({ kind: 'waiting', id: asked })
  if (isRefusal(reply)) return { status: 503, body: reply.message, retryAfterSeconds: 1 }
  if (reply.kind !== 'waiting') throw new Error('the index answered something else')
  index.refresh()
  const row = index.row(idBytes(asked))
  if (row === undefined && !reply.waits) return { status: 404, body: 'Bundle not found' }
  const root = row === undefined ? undefined : index.rootOf(row)
  const count = index.count({ bundledIn: [idBytes(asked)] }, new Effort(100_000, 200, clock))
  const { waits, attempts, dueMs } = reply
  const body = {
    id: asked,
    state: waits ? 'queued' : (count ?? 1) > 0 ? 'unbundled' : 'known',
    ...(root === undefined ? {} : { rootTransactionId: idOfBytes(root.id) }),
    // Too many to count in a moment: left out.
    ...(count === undefined ? {} : { dataItemCount: count, matchedDataItemCount: count }),
    importAttemptCount: attempts + (waits ? 0 : 1),
    retryAttemptCount: attempts,
    ...(dueMs === undefined ? {} : { nextAttemptAt: Math.floor(dueMs / 1000) }),
  }
  return { status: 200, body }
}

/** Sizes of tables and shared numbers alone: nothing is counted, so it may be asked each second. */
function debug({ index, tip, forkDepth, following, clock }: IndexOrderParts): object {
  index.refresh()
  const { rows, blocks, pending } = index.counts()
  const top = index.topHeight()
  const { state, bundlesWaiting, missing } = following
  return {
    db: {
      counts: { rows, stableBlocks: blocks, newTxs: pending, missingTxs: missing, bundlesWaiting },
      heights: {
        ...(top === undefined ? {} : { maxStable: top - forkDepth, maxNew: top }),
        ...(tip.height < 0 ? {} : { tip: tip.height }),
      },
      timestamps: { now: Math.floor(clock.now() / 1000) },
      errors: state === 'halted' ? ['a fork is too deep: the index stands still'] : [],
      warnings: missing > 0 ? [`${missing} transactions of indexed blocks are missing`] : [],
    },
  }
}
