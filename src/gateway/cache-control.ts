import type { CacheRules } from './parts.js'

/** What the ladder of Cache-Control looks at. */
export interface CacheFacts {
  readonly stable: boolean
  readonly trusted: boolean
  readonly sizeBytes: number
  readonly contentType: string
}

/** A type without its parameters, lower case: what rules and routes compare. */
export function bareType(contentType: string): string {
  const semicolon = contentType.indexOf(';')
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
}

/** Says how long answers may be kept; make it once, the patterns are compiled here. */
export function cacheControl(rules: CacheRules): (facts: CacheFacts) => string {
  const patterns = rules.privateTypes.map(
    (pattern) =>
      new RegExp(
        `^${pattern
          .toLowerCase()
          .split('*')
          .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
          .join('[^/]*')}$`,
      ),
  )
  return ({ stable, trusted, sizeBytes, contentType }) => {
    const bare = bareType(contentType)
    const scope =
      sizeBytes > rules.privateSizeBytes || patterns.some((pattern) => pattern.test(bare))
        ? 'private'
        : 'public'
    if (stable) return `${scope}, max-age=${rules.stableSeconds}, immutable`
    return `${scope}, max-age=${trusted ? rules.trustedSeconds : rules.unstableSeconds}`
  }
}

/** For answers that a later publication may change: unknown ids, and a manifest's fallback. */
export function soonStale(rules: CacheRules): string {
  return `public, max-age=${rules.notFoundSeconds}, must-revalidate`
}
