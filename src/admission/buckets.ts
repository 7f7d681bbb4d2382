import type { Request } from '../http/exchange.js'
import type { CacheLimits } from '../http/response-cache.js'
import type { Credits, Grant } from './admission-port.js'
import type { Balance } from './bucket-table.js'
import type { Client } from './clients.js'
import type { ClaimOptions, SettlementClaims } from './settlement-claims.js'

/** What names a resource's bucket: host, method and path, for example of a request. */
export type Named = Pick<Request, 'method' | 'path' | 'header'>

export type BucketKind = 'ip' | 'resource'

/**
 * Whose tokens an answer costs: those of the client alone, or those of the client and of the resource. `payer`: those of a client
 * whose payment was just credited, so a slow answer of the buckets is waited for.
 */
export type TakenFrom = 'client' | 'payer' | 'both'

/** A take that was refused: nothing was taken. */
export interface Shortage {
  readonly short: BucketKind
  /** Seconds until the same take would succeed; undefined where it never will, because a full bucket holds less. */
  readonly retrySeconds: number | undefined
  /** Buckets of this gateway stood in for those that count paid tokens: whether the client has some is not known. */
  readonly isPaidUnknown?: true
}

/** Where the buckets are: memory that threads share, or Redis. */
export interface Buckets extends Credits {
  /** As they are now. */
  readonly rules: Readonly<Record<BucketKind, BucketRules>>
  /** From now on buckets go by these rules. */
  use(rules: Readonly<Record<BucketKind, BucketRules>>): void
  /**
   * Takes exactly `tokens` (integer, 1 at least) from the client's bucket and from the resource's, or nothing. Regular tokens
   * are used before paid ones. A take with paid tokens takes nothing from the resource's bucket. Where that bucket is short, a
   * client that has used little (`hasUsedLittle`) passes all the same; else the client's paid tokens are used, so that a client
   * pays once for egress. `from`: only `both` takes from the bucket of the resource.
   */
  take(client: Client, named: Named, tokens: number, from: TakenFrom): Taking | Promise<Taking>
  /**
   * Undefined where the bucket is not in memory, because it was not used lately and has no paid tokens: then it is
   * full. Rejects as `credit` does.
   */
  ofClient(client: Client): Promise<Balance | undefined>
  ofResource(named: Named): Promise<Balance | undefined>
  /** The buckets for a server that takes tokens by itself. Absent: they are not in shared memory. */
  lend?(): Pick<CacheLimits, 'ip' | 'resource'>
  /** The key of a resource's bucket there. */
  keyOf?(named: Named): { readonly one: number; readonly two: number }
  /** Claims on settlements among the gateways that fill these buckets; absent where no other gateway can fill them. */
  claims?(options: ClaimOptions): SettlementClaims
}

export interface BucketRules {
  /** Tokens of a full bucket. */
  readonly capacity: number
  readonly refillPerSecond: number
}

/** What `credit` and the look-ups reject with where buckets cannot be reached now. Anything else is a bug. */
export class BucketsUnreachable extends Error {}

/** The buckets cannot be reached, and the operator wants no answers without limits. */
export interface Unavailable {
  readonly unavailable: true
}

export type Taking = Ticket | Shortage | Unavailable

/** Tokens taken for one answer. */
export abstract class Ticket implements Grant {
  lines = ''
  /** Tokens that `takeFirst` took before: they are counted for the bytes that are sent, and never given back. */
  prepaidTokens = 0

  constructor(
    readonly tokens: number,
    /** How many of the client's were paid ones, and not given back. */
    public paid: number,
    /** Tokens taken from the resource's bucket, and how many of them were paid ones and not given back. */
    readonly resourceTokens = 0,
    protected resourcePaid = 0,
  ) {}

  /** Paid tokens of the resource's bucket. */
  get paidByResource(): number {
    return this.resourcePaid
  }

  returnUnsent(bytesSent: number): void {
    const unused = this.tokens + this.prepaidTokens - tokensOf(bytesSent)
    if (unused > 0) this.give(Math.min(unused, this.tokens))
  }

  /** Gives tokens back, paid ones first, because they were taken last. */
  abstract give(tokens: number): void
}

/**
 * Whether a client's bucket has at least half of its regular tokens. Such a client passes by a resource's bucket that is short:
 * any ten addresses can empty that one, and a resource would be away for everybody else.
 */
export function hasUsedLittle(regular: number, rules: Pick<BucketRules, 'capacity'>): boolean {
  return regular >= leastOfLittle(rules)
}

/** Regular tokens with which a client has used little. */
export function leastOfLittle({ capacity }: Pick<BucketRules, 'capacity'>): number {
  return Math.ceil(capacity / 2)
}

/** 1 token for each KiB begun; every answer costs at least one. */
export function tokensOf(bytes: number): number {
  return bytes <= 1024 ? 1 : Math.ceil(bytes / 1024)
}

/** The host of a resource's bucket. */
export function hostOf(named: Named): string {
  return named.header('host')?.toLowerCase() ?? ''
}

/** The path of a resource's bucket: doubled slashes count once. */
export function pathOf({ path }: Named): string {
  return path.includes('//') ? path.replace(/\/{2,}/g, '/') : path
}

/** The name of a resource's bucket, as text: three words separated by spaces, so that it cannot be an address. */
export function resourceName(named: Named): string {
  return `${named.method} ${hostOf(named)} ${pathOf(named)}`
}

/** What `resourceName` named; undefined where the text is no such name. */
export function readResourceName(text: string): Named | undefined {
  const found = /^(\S+) (\S*) (\/\S*)$/.exec(text)
  if (found === null) return undefined
  const [, method = '', host = '', path = ''] = found
  return { method, path, header: (name) => (name === 'host' ? host : undefined) }
}
