import { blockOf, type Line } from '../attest/line.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import type { Id } from '../format/id.js'
import type { Resolution } from '../names/names-port.js'

/**
 * The lines of an answer to a request by name. Prepared heads are kept by object identity, so one object is made for each
 * resolution.
 */
export interface Naming {
  /** The resolved name with its undername; absent where content is not served by name (an apex id, a page for unknown names). */
  readonly name?: string
  /** Goes into the entity tag: a 304 then means the same bytes and the same resolution. */
  readonly resolvedId?: Id
  readonly lines: readonly Line[]
  /** The lines for answers without content, each with CRLF in front. */
  readonly block: string
  /** The value of Cache-Control; or its upper limit; or `stable`, where the address never changes its meaning. */
  readonly caching: string | { readonly capSeconds: number } | { readonly stable: true }
  /** Instead of 200; conditions and ranges do not count then. */
  readonly status?: 404
}

/** The naming of content served by a name: the name headers, and caching by the name's TTL. */
export function namingOf(resolution: Resolution, words: Vocabulary): Naming {
  const lines = nameLines(resolution, words)
  return {
    name: resolution.name.full,
    resolvedId: resolution.id,
    lines,
    block: `\r\n${blockOf(lines)}`,
    caching: `public, max-age=${resolution.ttlSeconds}`,
  }
}

/** The naming of content that is served under a name without being what the name means. */
export function unnamed(caching: Naming['caching'], status?: 404): Naming {
  return { lines: [], block: '', caching, ...(status === undefined ? {} : { status }) }
}

/** The headers with the record of a name. */
export function nameLines(resolution: Resolution, words: Vocabulary): Line[] {
  const { name, id, ttlSeconds, antProgramId, antId, resolvedAtMs, undernameLimit, recordIndex } = resolution
  const facts: [string, string | number | undefined][] = [
    ['Name', name.full],
    ['Resolved-Id', id],
    ['TTL-Seconds', ttlSeconds],
    ['ANT-Program-Id', antProgramId],
    ['ANT-Id', antId],
    ['Basename', name.basename],
    ['Record', name.record],
    ['Resolved-At', resolvedAtMs],
  ]
  if (undernameLimit !== undefined && recordIndex !== undefined) {
    facts.push(['Undername-Limit', undernameLimit], ['Record-Index', recordIndex])
  }
  return facts.flatMap(([suffix, value]) =>
    value === undefined ? [] : ([[`${words.names}${suffix}`, String(value)]] as const),
  )
}
