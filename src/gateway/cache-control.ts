/** Seconds and bounds of the Cache-Control ladder. */
export interface CacheRules {
  readonly defaultSeconds: number
  readonly stableSeconds: number
  readonly trustedSeconds: number
  readonly unstableSeconds: number
  readonly notFoundSeconds: number
  /** What the operator does not serve. */
  readonly blockedSeconds: number
  /** Larger content is private to the client. */
  readonly privateSizeBytes: number
  /** Patterns such as `video/*`; `*` does not cross the slash. */
  readonly privateTypes: readonly string[]
}

/** What the ladder of Cache-Control looks at. */
export interface CacheFacts {
  readonly stable: boolean
  readonly trusted: boolean
  readonly sizeBytes: number
  readonly contentType: string
  /** The longest that the answer may be kept, whatever it is: its address may come to mean something else. */
  readonly capSeconds?: number
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
  return ({ stable, trusted, sizeBytes, contentType, capSeconds }) => {
    const bare = bareType(contentType)
    const scope =
      sizeBytes > rules.privateSizeBytes || patterns.some((pattern) => pattern.test(bare))
        ? 'private'
        : 'public'
    if (capSeconds !== undefined) {
      const seconds = stable ? rules.stableSeconds : trusted ? rules.trustedSeconds : rules.unstableSeconds
      return `${scope}, max-age=${Math.min(seconds, capSeconds)}, must-revalidate`
    }
    if (stable) return `${scope}, max-age=${rules.stableSeconds}, immutable`
    return `${scope}, max-age=${trusted ? rules.trustedSeconds : rules.unstableSeconds}`
  }
}

/** For answers that a later publication may change: unknown ids, and a manifest's fallback. */
export function soonStale(rules: CacheRules): string {
  return `public, max-age=${rules.notFoundSeconds}, must-revalidate`
}
