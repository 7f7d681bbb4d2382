import type { Address } from '../../actor/mailbox-address.js'
import { isRefusal } from '../../format/refusal.js'
import type { SourceReply, SourceRequest, TierRequest } from '../../source/source-messages.js'
import type { Order, OrderAnswer } from './order.js'

type Line = Address<SourceRequest, SourceReply>

/** Orders about the object store of CONTENT_STORE: how it is, and moving all content to or from it. */
export function storeOrders(line: Line): Order[] {
  return [
    {
      method: 'GET',
      path: 'content-store',
      summary: 'How the object store is, what waits for it, and how far a push or pull is',
      statuses: [200, 404, 503],
      act: () => act(line, 'state'),
    },
    {
      method: 'POST',
      path: 'content-store/push',
      summary: 'Begins to put all verified content on disk into the object store, or goes on with it',
      statuses: [200, 404, 503],
      act: () => act(line, 'push'),
    },
    {
      method: 'POST',
      path: 'content-store/pull',
      summary: 'Begins to bring all content of the object store onto the disk',
      statuses: [200, 404, 503],
      act: () => act(line, 'pull'),
    },
    {
      method: 'POST',
      path: 'content-store/stop',
      summary: 'Ends the push or pull; a later one goes on from what is there',
      statuses: [200, 404, 503],
      act: () => act(line, 'stop'),
    },
  ]
}

async function act(line: Line, order: TierRequest['order']): Promise<OrderAnswer> {
  const reply = await line.ask({ kind: 'object-store', order })
  const refusal = isRefusal(reply) ? reply : reply.kind === 'refused' ? reply.refusal : undefined
  if (refusal !== undefined) return { status: 503, body: refusal.message, retryAfterSeconds: 1 }
  const state = !isRefusal(reply) && reply.kind === 'object-store' ? reply.state : undefined
  return state === undefined
    ? { status: 404, body: 'There is no object store: see CONTENT_STORE' }
    : { status: 200, body: state }
}
