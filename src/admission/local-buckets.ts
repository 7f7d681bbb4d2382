import type { Key, Secret } from './bucket-key.js'
import type { BucketTable } from './bucket-table.js'
import {
  type BucketKind,
  type BucketRules,
  hasUsedLittle,
  leastOfLittle,
  type Named,
  type Shortage,
  type TakenFrom,
  Ticket,
} from './buckets.js'
import type { Client } from './clients.js'
import { ResourceKeys } from './resource-keys.js'

export interface LocalParts {
  readonly ip: BucketTable
  readonly resource: BucketTable
  /** Key of the hash of names and addresses: that of the clients that are charged. */
  readonly secret: Secret
}

/** Takes from buckets in memory that all threads of the program share: a take is over on return. */
export class LocalBuckets {
  readonly #keys: ResourceKeys

  constructor(protected readonly tables: LocalParts) {
    this.#keys = new ResourceKeys(tables.secret)
  }

  /** As they are now. */
  get rules(): Readonly<Record<BucketKind, BucketRules>> {
    const { ip, resource } = this.tables
    return { ip: ip.rules, resource: resource.rules }
  }

  /** As `Buckets.take`. */
  take(client: Client, named: Named, tokens: number, from: TakenFrom): Ticket | Shortage {
    const { ip, resource } = this.tables
    if (!ip.take(client.key, tokens)) {
      return { short: 'ip', retrySeconds: ip.secondsUntil(client.key, tokens) }
    }
    const { tookPaid, hadRegular, rules } = ip
    if (from !== 'both' || tookPaid > 0) return new LocalTicket(this.tables, client.key, tokens, tookPaid)
    const key = this.keyOf(named)
    if (resource.take(key, tokens)) {
      const { tookPaid: resourcePaid } = resource
      return new LocalTicket(this.tables, client.key, tokens, 0, key, resourcePaid)
    }
    if (hasUsedLittle(hadRegular, rules)) return new LocalTicket(this.tables, client.key, tokens, 0)
    const stoodIn = ip.takePaid(client.key, tokens)
    ip.give(client.key, tokens, 0)
    if (stoodIn) return new LocalTicket(this.tables, client.key, tokens, tokens)
    const ways = [
      resource.secondsUntil(key, tokens),
      ip.secondsUntilRegular(client.key, leastOfLittle(rules)),
    ].filter((seconds) => seconds !== undefined)
    return { short: 'resource', retrySeconds: ways.length === 0 ? undefined : Math.min(...ways) }
  }

  /** The key of the bucket of a resource. */
  keyOf(named: Named): Key {
    return this.#keys.of(named)
  }
}

class LocalTicket extends Ticket {
  constructor(
    private readonly tables: Pick<LocalParts, 'ip' | 'resource'>,
    private readonly client: Key,
    tokens: number,
    paid: number,
    private readonly resource?: Key,
    resourcePaid = 0,
  ) {
    super(tokens, paid, resource === undefined ? 0 : tokens, resourcePaid)
  }

  give(tokens: number): void {
    const paid = Math.min(tokens, this.paid)
    this.paid -= paid
    this.tables.ip.give(this.client, tokens - paid, paid)
    if (this.resource === undefined) return
    const back = Math.min(tokens, this.resourcePaid)
    this.resourcePaid -= back
    this.tables.resource.give(this.resource, tokens - back, back)
  }
}
