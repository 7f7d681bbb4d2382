import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'

/** A name as it stands in front of a root host, lower case: `docs_site` is the record `docs` of the base name `site`. */
export interface Name {
  /** The whole label. */
  readonly full: string
  readonly basename: string
  /** The undername; `@` where there is none. */
  readonly record: string
}

/** What a resolver knows of a name. */
export interface NameRecord {
  readonly id: Id
  /** How long it may be believed. */
  readonly ttlSeconds: number
  /** The token that holds the name's records. */
  readonly antId?: string
  readonly antProgramId?: string
  /** Undernames that are paid for. */
  readonly undernameLimit?: number
  /** Place of this record among all of the base name, by priority; 0 for `@`. Served where it is not above the limit. */
  readonly recordIndex?: number
}

/** A name that was resolved. One object for as long as it is believed: whoever prepares something for it may key it by this. */
export interface Resolution extends NameRecord {
  readonly name: Name
  readonly resolvedAtMs: number
}

/**
 * What a resolver says, `resolvedAtMs` where it says it from memory: `absent` only where it knows that there is no such name;
 * `blocked` where it may not tell.
 */
export type ResolverVerdict =
  | (NameRecord & { readonly resolvedAtMs?: number })
  | 'absent'
  | 'blocked'
  | Refusal

/** What became of a name. A refusal where the resolvers failed: that is never the same as `absent`. */
export type Outcome = Resolution | 'absent' | 'blocked' | Refusal

/** On whose behalf a question goes out. */
export interface ResolveContext {
  /** Gateways that the request passed already; they are told, so that nobody asks in a circle. */
  readonly hops: number
  readonly via: readonly string[]
  readonly signal: AbortSignal
}

/** Knows names, or whom to ask. The one port behind which registries and other gateways stand. */
export interface Resolver {
  readonly label: 'local' | 'gateway' | 'on-demand'
  /** True where other machines are asked: not on behalf of requests that may not be carried on. */
  readonly remote: boolean
  /** Never rejects. Refusals: `upstream` (unreachable), `forged` (nonsense), `late` (gave up because of the signal), `busy`. */
  resolve(name: Name, asking: ResolveContext): Promise<ResolverVerdict>
}

/** The way that a request came. */
export interface Trail extends Omit<ResolveContext, 'signal'> {
  /** True where it may be carried on to other machines. */
  readonly forward: boolean
}

/** Names as an edge thread asks for them. */
export interface Names {
  /** At once, from memory; undefined: ask `resolve`. */
  known(name: Name): Outcome | undefined
  /** Asks the resolvers. Whoever asks for one name at once shares one answer. Never rejects. */
  resolve(name: Name, trail: Trail): Promise<Outcome>
}

/**
 * True where the request bears no word of gateways that it passed. Only then an outcome is one that everybody would get: whoever
 * is asked may leave out, or refuse to ask, those that a trail names.
 */
export function isUntrailed({ hops, via }: Pick<ResolveContext, 'hops' | 'via'>): boolean {
  return hops === 0 && via.length === 0
}

/** Tells a resolution from everything else that may become of a name. */
export function isResolved<Found extends NameRecord>(
  outcome: Found | 'absent' | 'blocked' | Refusal,
): outcome is Found {
  return typeof outcome === 'object' && 'id' in outcome
}
