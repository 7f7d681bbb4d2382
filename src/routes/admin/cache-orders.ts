import type { Address } from '../../actor/mailbox-address.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import { type Id, parseId } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { SourceReply, SourceRequest } from '../../source/source-messages.js'
import { done, malformedOrder, type Order, type OrderAnswer, type OrderCall } from './order.js'

export interface CacheOrderParts {
  readonly catalog: LmdbCatalog
  readonly fetcher: Address<SourceRequest, SourceReply>
  /** Payloads in the store, and bytes that it takes on disk. */
  readonly usage: () => { readonly blobs: number; readonly bytes: number }
  /** Bytes of content that may lie on disk. */
  readonly maxBytes: number
}

/** Orders about content on disk: how much there is, removing one, and keeping one. */
export function cacheOrders(parts: CacheOrderParts): Order[] {
  return [
    {
      method: 'GET',
      path: 'cache',
      summary: 'What the content on disk takes',
      statuses: [200],
      act: () => ({ status: 200, body: cacheUsage(parts) }),
    },
    {
      method: 'DELETE',
      path: 'cache/',
      rest: 'id',
      summary: 'Removes content from disk: an item in a bundle with the bundle, which the answer names',
      statuses: [200, 404, 503],
      act: (call) => evict(parts, call),
    },
    {
      method: 'PUT',
      path: 'pins/',
      rest: 'id',
      summary:
        'Keeps content that is on disk there, whatever room is needed: an item in a bundle keeps the bundle',
      statuses: [200, 404, 503],
      act: (call) => pin(parts, call, true),
    },
    {
      method: 'DELETE',
      path: 'pins/',
      rest: 'id',
      summary: 'Lets content go again when room is needed',
      statuses: [200, 404, 503],
      act: (call) => pin(parts, call, false),
    },
  ]
}

/** Numbers that catalog and segments keep up to date; nothing is counted here. */
export function cacheUsage({ usage, maxBytes }: Pick<CacheOrderParts, 'usage' | 'maxBytes'>): object {
  const { blobs, bytes } = usage()
  return { blobs, bytes, maxBytes }
}

/** Content on disk: its digest, and the bundle that holds its bytes where it has none of its own. */
interface Held {
  readonly digest: Uint8Array
  readonly bundle?: { readonly id: Id; readonly digest: Uint8Array }
}

/** The content of an id on disk: in a file or segment, or as a window of a bundle. Undefined: it is not there. */
async function heldOf({ catalog, fetcher }: CacheOrderParts, id: Id): Promise<Held | Refusal | undefined> {
  const known = catalog.attributes(id)
  const own = known?.digest
  if (own !== undefined && catalog.blobSize(own) !== undefined) return { digest: own }
  const rootId = known?.place?.rootId
  const bundle = rootId === undefined ? undefined : catalog.attributes(rootId)?.digest
  if (rootId === undefined || bundle === undefined || catalog.blobSize(bundle) === undefined) return undefined
  // Whether the item is what lies there is judged now: afterwards its digest is known.
  const reply = await fetcher.ask({ kind: 'judge-item', id })
  if (isRefusal(reply)) return reply
  if (reply.kind === 'refused') return reply.refusal
  const digest = catalog.attributes(id)?.digest
  if (reply.kind !== 'checked' || !reply.sound || digest === undefined) return undefined
  return { digest, bundle: { id: rootId, digest: bundle } }
}

const notHere: OrderAnswer = { status: 404, body: 'Not in the cache' }

function later(body: string): OrderAnswer {
  return { status: 503, body, retryAfterSeconds: 1 }
}

/** The bundle in an order's answer, where its bytes were meant. */
function bundleIn({ bundle }: Held): { readonly bundle?: Id } {
  return bundle === undefined ? {} : { bundle: bundle.id }
}

async function pin(parts: CacheOrderParts, { rest }: OrderCall, isPinned: boolean): Promise<OrderAnswer> {
  const id = parseId(rest)
  if (id === undefined) return malformedOrder('Must provide a valid id')
  const failed = later('The pin could not be changed')
  const held = isPinned ? await heldOf(parts, id) : digestOf(parts, id)
  if (isRefusal(held)) return failed
  if (held === undefined) return notHere
  const { digest, bundle } = held
  const within = bundle === undefined ? {} : { bundle: bundle.digest }
  const reply = await parts.fetcher.ask({ kind: 'pin', digest, isPinned, ...within })
  if (isRefusal(reply) || reply.kind !== 'pinned' || !reply.isDone) return failed
  return done(isPinned ? 'Content pinned' : 'Content unpinned', { pins: reply.count, ...bundleIn(held) })
}

/** What was pinned may be let go when it is no longer on disk. */
function digestOf({ catalog }: CacheOrderParts, id: Id): Held | undefined {
  const digest = catalog.attributes(id)?.digest
  return digest === undefined ? undefined : { digest }
}

async function evict(parts: CacheOrderParts, { rest }: OrderCall): Promise<OrderAnswer> {
  const id = parseId(rest)
  if (id === undefined) return malformedOrder('Must provide a valid id')
  const failed = later('The content could not be removed')
  const held = await heldOf(parts, id)
  if (isRefusal(held)) return failed
  if (held === undefined) return notHere
  // Bytes in the middle of a bundle go with all of it.
  const { digest } = held.bundle ?? held
  const reply = await parts.fetcher.ask({ kind: 'evict', digest })
  if (isRefusal(reply) || reply.kind !== 'evicted' || !reply.dropped) return failed
  return done('Content evicted', bundleIn(held))
}
