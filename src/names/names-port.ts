import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import type { Trail } from '../source/source-messages.js'
import type { Bounded } from './name-marks.js'

/**
 * A name as it is written in front of a root host, lower case: `docs_site` is the record `docs` of the base name
 * `site`.
 */
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

/**
 * A name that was resolved. The same object as long as it is valid, so that values derived from it can be cached by
 * identity.
 */
export interface Resolution extends NameRecord {
  readonly name: Name
  readonly resolvedAtMs: number
}

/**
 * The answer of a resolver, with `resolvedAtMs` where it is from memory: `absent` only where it knows that there is
 * no such name; `blocked` where it may not answer.
 */
export type ResolverVerdict =
  | (NameRecord & { readonly resolvedAtMs?: number })
  | 'absent'
  | 'blocked'
  | Refusal

/** The outcome of resolving a name. A refusal where the resolvers failed, which is never treated as `absent`. */
export type Outcome = Resolution | 'absent' | 'blocked' | Refusal

/** The request on whose behalf a name is resolved. */
export interface ResolveContext {
  /** Gateways that the request passed already; sent along, so that requests cannot go round in a loop. */
  readonly hops: number
  readonly via: readonly string[]
  readonly signal: AbortSignal
}

/** The interface to a source of names: the local registry, a registry of the network, or other gateways. */
export interface Resolver {
  readonly label: 'local' | 'gateway' | 'on-demand'
  /** True where it sends requests to other machines. Not used for requests that must not be forwarded. */
  readonly remote: boolean
  /** Whether it can be requested for this name: another one is absent there. Absent: it can for each. */
  readonly accepts?: (name: Name) => boolean
  /**
   * Never rejects. Refusals: `upstream` (unreachable), `forged` (a malformed answer), `late` (gave up because of the
   * signal), `busy`.
   */
  resolve(name: Name, asking: ResolveContext): Promise<ResolverVerdict>
}

/** Resolution of names for an edge thread. */
export interface Names {
  /** At once, from memory; undefined: call `resolve`. */
  known(name: Name): Outcome | undefined
  /**
   * The state on which the last answer of `known` for this name depends. While it is unchanged, `known` answers the same.
   * Undefined: it cannot be watched. Absent: nothing can.
   */
  watch?(name: Name): readonly Bounded[] | undefined
  /**
   * Asks the resolvers. Concurrent calls for one name share one resolution. `client`: whose share of those under way it uses.
   * Never rejects.
   */
  resolve(name: Name, trail: Trail, client: string): Promise<Outcome>
}

/**
 * True where the request names no gateways that it passed. Only then the outcome is the same for all clients: other
 * gateways skip those that a trail names.
 */
export function isUntrailed({ hops, via }: Pick<ResolveContext, 'hops' | 'via'>): boolean {
  return hops === 0 && via.length === 0
}

/** Whether an outcome is a resolution. */
export function isResolved<Found extends NameRecord>(
  outcome: Found | 'absent' | 'blocked' | Refusal,
): outcome is Found {
  return typeof outcome === 'object' && 'id' in outcome
}
