import type { Address } from '../actor/address.js'
import { isRefusal } from '../format/refusal.js'
import type { SourceReply, SourceRequest } from '../source/protocol.js'
import type { Content } from '../store/content.js'
import type { Source } from './parts.js'

/** Turns what the fetcher opened into content (source/readers.ts); closing that tells the fetcher. */
export interface Grower {
  grow(opened: Extract<SourceReply, { kind: 'opened' }>): Content
}

/** The fetcher's thread as a source of this one. */
export function fetchedFrom(fetcher: Address<SourceRequest, SourceReply>, readers: Grower): Source {
  return {
    async open(wanted) {
      const reply = await fetcher.ask({ kind: 'open', ...wanted })
      if (isRefusal(reply)) return reply
      if (reply.kind === 'refused') return reply.refusal
      if (reply.kind !== 'opened') throw new Error(`an open was answered with ${reply.kind}`)
      const { attributes, base, sizeBytes, source, trusted, hops } = reply
      return {
        ...{ attributes, source, trusted },
        content: readers.grow(reply),
        window: { start: base, end: base + sizeBytes },
        ...(hops === undefined ? {} : { hops }),
      }
    },
    async check(id, digest) {
      const reply = await fetcher.ask({ kind: 'check', id, digest })
      if (isRefusal(reply)) return reply
      if (reply.kind === 'refused') return reply.refusal
      if (reply.kind !== 'checked') throw new Error(`a check was answered with ${reply.kind}`)
      return reply.sound
    },
  }
}
