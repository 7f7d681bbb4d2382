import type { CatalogRequest } from '../../catalog/catalog-messages.js'
import type { ItemInput } from '../../catalog/index-protocol.js'
import { packItems } from '../../catalog/pack.js'
import { idOfBytes } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { sha256 } from '../../proof/digest.js'
import { bundleStatus, debug, type IndexOrderParts } from './index-state.js'
import {
  done,
  isOrderAnswer,
  malformedOrder,
  type Order,
  type OrderAnswer,
  type OrderCall,
  readBody,
} from './order.js'

const itemsBodyMaxBytes = 10_000_000

/** Loaded with the first order: zod takes 6.7 MB of each edge thread, and most never get one. */
const shapes = () => import('./index-shapes.js')

/** The bundle of announced items is not known yet. */
const nowhere = idOfBytes(Buffer.alloc(32))

/** Orders about the index. */
export function indexOrders(parts: IndexOrderParts): Order[] {
  return [
    {
      method: 'GET',
      path: 'debug',
      summary: 'Numbers of the index',
      statuses: [200],
      act: () => ({ status: 200, body: debug(parts) }),
    },
    {
      method: 'POST',
      path: 'queue-tx',
      summary: 'Has a transaction indexed',
      statuses: [200, 429, 503],
      act: (call) => queueTransaction(parts, call),
    },
    {
      method: 'POST',
      path: 'queue-bundle',
      summary: 'Has a bundle opened',
      statuses: [200, 429, 503],
      act: (call) => queueBundle(parts, call),
    },
    {
      method: 'POST',
      path: 'queue-data-item',
      summary: 'Announces items that lie in no bundle yet',
      statuses: [200, 503],
      bodyMaxBytes: itemsBodyMaxBytes,
      act: (call) => queueItems(parts, call),
    },
    {
      method: 'POST',
      path: 'forget-data-item',
      summary: 'Forgets announced items that will be in no bundle',
      statuses: [200, 503],
      bodyMaxBytes: itemsBodyMaxBytes,
      act: (call) => forgetItems(parts, call),
    },
    {
      method: 'GET',
      path: 'bundle-status/',
      rest: 'id',
      summary: 'How far a bundle is',
      statuses: [200, 404, 503],
      act: (call) => bundleStatus(parts, call),
    },
  ]
}

async function queueTransaction({ ingest }: IndexOrderParts, { body }: OrderCall): Promise<OrderAnswer> {
  const { transactionBody } = await shapes()
  const read = readBody(transactionBody, body)
  if (isOrderAnswer(read)) return read
  const reply = await ingest.ask({ kind: 'queue-transaction', id: read.id })
  return isRefusal(reply) ? full(reply) : done('TX queued')
}

async function queueBundle(parts: IndexOrderParts, call: OrderCall): Promise<OrderAnswer> {
  const { bundleBody } = await shapes()
  const read = readBody(bundleBody, call.body)
  if (isOrderAnswer(read)) return read
  if (!read.bypassFilter) return queueTransaction(parts, call)
  const reply = await parts.ingest.ask({ kind: 'queue-bundle', id: read.id })
  return isRefusal(reply) ? full(reply) : done('Bundle queued')
}

function full({ refused, message }: Refusal): OrderAnswer {
  return { status: refused === 'busy' ? 429 : 503, body: message, retryAfterSeconds: 1 }
}

/**
 * Announced items are pending in the index, in no bundle, until their bundle comes; without it they are removed after some
 * days.
 */
async function queueItems({ keeper }: IndexOrderParts, { body }: OrderCall): Promise<OrderAnswer> {
  if (!Array.isArray(body)) return malformedOrder('Must provide array of data item headers')
  const { itemsBody, itemsMax } = await shapes()
  if (body.length > itemsMax) return malformedOrder(`Too many data item headers: ${itemsMax} at most`)
  const read = itemsBody.safeParse(body)
  if (!read.success) return malformedOrder('Must provide array of data item headers')
  const rows = read.data.map((header): ItemInput => {
    const { owner, signature, tags, target, anchor } = header
    const none = new Uint8Array(0)
    return {
      owner,
      signature,
      tags,
      id: idOfBytes(header.id),
      size: header.data_size,
      ownerAddress: sha256(owner),
      target: target ?? none,
      anchor: anchor ?? none,
      parentId: nowhere,
      rootItemOffset: 0,
      parentItemOffset: 0,
      headerSize: 0,
    }
  })
  const words: CatalogRequest = {
    kind: 'index-items',
    rootId: nowhere,
    items: packItems(rows, 'came'),
    optimistic: true,
  }
  const reply = await keeper.ask(words)
  if (!isRefusal(reply)) return done('Data item(s) queued')
  return { status: 503, body: reply.message, retryAfterSeconds: 1 }
}

/** Announced items are neither found nor served any more; those that are in a block, or were verified, stay as they are. */
async function forgetItems({ keeper }: IndexOrderParts, { body }: OrderCall): Promise<OrderAnswer> {
  const { goneBody } = await shapes()
  const read = readBody(goneBody, body)
  if (isOrderAnswer(read)) return read
  const reply = await keeper.ask({ kind: 'forget-items', ids: read })
  if (!isRefusal(reply)) return done('Data item(s) forgotten')
  return { status: 503, body: reply.message, retryAfterSeconds: 1 }
}
