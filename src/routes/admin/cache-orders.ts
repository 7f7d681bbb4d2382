import type { Address } from '../../actor/address.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import { parseId } from '../../format/id.js'
import { isRefusal } from '../../format/refusal.js'
import type { SourceReply, SourceRequest } from '../../source/protocol.js'
import { type Asked, done, type Order, type Told, wrong } from './order.js'

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
      summary: 'Removes content from disk',
      statuses: [200, 404, 503],
      act: (asked) => evict(parts, asked),
    },
    {
      method: 'PUT',
      path: 'pins/',
      rest: 'id',
      summary: 'Keeps content that is on disk there, whatever room is needed',
      statuses: [200, 404, 503],
      act: (asked) => pin(parts, asked, true),
    },
    {
      method: 'DELETE',
      path: 'pins/',
      rest: 'id',
      summary: 'Lets content go again when room is needed',
      statuses: [200, 404, 503],
      act: (asked) => pin(parts, asked, false),
    },
  ]
}

/** Numbers that catalog and segments keep up to date; nothing is counted here. */
export function cacheUsage({ usage, maxBytes }: Pick<CacheOrderParts, 'usage' | 'maxBytes'>): object {
  const { blobs, bytes } = usage()
  return { blobs, bytes, maxBytes }
}

async function pin({ catalog, fetcher }: CacheOrderParts, { rest }: Asked, isPinned: boolean): Promise<Told> {
  const id = parseId(rest)
  if (id === undefined) return wrong('Must provide a valid id')
  const digest = catalog.attributes(id)?.digest
  if (digest === undefined || (isPinned && catalog.blobSize(digest) === undefined))
    return { status: 404, body: 'Not in the cache' }
  const reply = await fetcher.ask({ kind: 'pin', digest, isPinned })
  if (isRefusal(reply) || reply.kind !== 'pinned' || !reply.isDone)
    return { status: 503, body: 'The pin could not be changed', retryAfterSeconds: 1 }
  return done(isPinned ? 'Content pinned' : 'Content unpinned', { pins: reply.count })
}

async function evict({ catalog, fetcher }: CacheOrderParts, { rest }: Asked): Promise<Told> {
  const id = parseId(rest)
  if (id === undefined) return wrong('Must provide a valid id')
  const digest = catalog.attributes(id)?.digest
  if (digest === undefined || catalog.blobSize(digest) === undefined)
    return { status: 404, body: 'Not in the cache' }
  const reply = await fetcher.ask({ kind: 'evict', digest })
  if (!isRefusal(reply) && reply.kind === 'evicted' && reply.dropped) return done('Content evicted')
  return { status: 503, body: 'The content could not be removed', retryAfterSeconds: 1 }
}
