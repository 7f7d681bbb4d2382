import type { Address } from '../../actor/address.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import { parseId } from '../../format/id.js'
import { isRefusal } from '../../format/refusal.js'
import type { SourceReply, SourceRequest } from '../../source/protocol.js'
import { type Asked, done, type Order, type Told, wrong } from './order.js'

export interface CacheOrderParts {
  readonly catalog: LmdbCatalog
  readonly fetcher: Address<SourceRequest, SourceReply>
  /** Bytes of content that may lie on disk. */
  readonly maxBytes: number
}

/** Orders about content on disk: how much there is, and removing one. */
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
  ]
}

/** Numbers that the catalog keeps up to date; nothing is counted here. */
export function cacheUsage({ catalog, maxBytes }: Pick<CacheOrderParts, 'catalog' | 'maxBytes'>): object {
  const { blobs, bytes } = catalog.usage()
  return { blobs, bytes, maxBytes }
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
