import { bareType } from '../format/media-type.js'

/** Seconds and limits from which Cache-Control is made. */
export interface CacheRules {
  readonly defaultSeconds: number
  readonly stableSeconds: number
  readonly trustedSeconds: number
  readonly unstableSeconds: number
  readonly notFoundSeconds: number
  /** Seconds for which answers about blocked content are kept. */
  readonly blockedSeconds: number
  /** Content above this size is `private`: shared caches do not keep it. */
  readonly privateSizeBytes: number
  /** Patterns such as `video/*`; `*` does not cross the slash. */
  readonly privateTypes: readonly string[]
}

/** What Cache-Control depends on. */
export interface CacheFacts {
  readonly stable: boolean
  readonly trusted: boolean
  readonly sizeBytes: number
  readonly contentType: string
  /** Upper limit, for addresses whose meaning may change (names). */
  readonly capSeconds?: number
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

/** Cache-Control of answers that change when something is published later: unknown ids, and a manifest's fallback. */
export function soonStale(rules: CacheRules): string {
  return `public, max-age=${rules.notFoundSeconds}, must-revalidate`
}
