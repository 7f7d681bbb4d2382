import type { Address } from '../actor/mailbox-address.js'
import { isRefusal } from '../format/refusal.js'
import type { Key, Secret } from './bucket-key.js'
import type { KeeperReply, KeeperRequest } from './bucket-messages.js'
import type { Balance, BucketTable } from './bucket-table.js'
import {
  type BucketKind,
  type BucketRules,
  type Buckets,
  BucketsUnreachable,
  hasUsedLittle,
  leastOfLittle,
  type Named,
  readResourceName,
  type Shortage,
  type TakenFrom,
  Ticket,
} from './buckets.js'
import type { Client, Clients } from './clients.js'
import { ResourceKeys } from './resource-keys.js'

export interface MemoryParts {
  readonly ip: BucketTable
  readonly resource: BucketTable
  readonly clients: Clients
  readonly secret: Secret
  readonly keeper: Address<KeeperRequest, KeeperReply>
}

/** Buckets in memory that all threads share: a take is over on return. Their keeper puts them on disk. */
export class MemoryBuckets implements Buckets {
  readonly #keys: ResourceKeys

  constructor(private readonly parts: MemoryParts) {
    this.#keys = new ResourceKeys(parts.secret)
  }

  get rules(): Readonly<Record<BucketKind, BucketRules>> {
    const { ip, resource } = this.parts
    return { ip: ip.rules, resource: resource.rules }
  }

  use(): void {
    // Their keeper writes the rules into the memory that all threads share.
  }

  take(client: Client, named: Named, tokens: number, from: TakenFrom): Ticket | Shortage {
    const { ip, resource } = this.parts
    if (!ip.take(client.key, tokens)) {
      return { short: 'ip', retrySeconds: ip.secondsUntil(client.key, tokens) }
    }
    const { tookPaid, hadRegular, rules } = ip
    if (from === 'client' || tookPaid > 0) return new MemoryTicket(this.parts, client.key, tokens, tookPaid)
    const key = this.keyOf(named)
    if (resource.take(key, tokens)) {
      const { tookPaid: resourcePaid } = resource
      return new MemoryTicket(this.parts, client.key, tokens, 0, key, resourcePaid)
    }
    if (hasUsedLittle(hadRegular, rules)) return new MemoryTicket(this.parts, client.key, tokens, 0)
    const stoodIn = ip.takePaid(client.key, tokens)
    ip.give(client.key, tokens, 0)
    if (stoodIn) return new MemoryTicket(this.parts, client.key, tokens, tokens)
    const ways = [
      resource.secondsUntil(key, tokens),
      ip.secondsUntilRegular(client.key, leastOfLittle(rules)),
    ].filter((seconds) => seconds !== undefined)
    return { short: 'resource', retrySeconds: ways.length === 0 ? undefined : Math.min(...ways) }
  }

  lend(): ReturnType<NonNullable<Buckets['lend']>> {
    const { ip, resource } = this.parts
    return { ip: ip.borrowed, resource: resource.borrowed }
  }

  keyOf(named: Named): Key {
    return this.#keys.of(named)
  }

  async credit(bucket: string, payment: string, tokens: number): Promise<'credited' | 'known'> {
    const named = readResourceName(bucket)
    const key = named === undefined ? this.parts.clients.at(bucket)?.key : this.keyOf(named)
    if (key === undefined) throw new Error('there is no such bucket')
    const words = [key.one, key.two, key.three, key.four] as const
    const kind = named === undefined ? 'ip' : 'resource'
    const reply = await this.parts.keeper.ask({ kind: 'credit', bucket: kind, key: words, payment, tokens })
    if (isRefusal(reply)) throw new BucketsUnreachable(`the keeper of buckets: ${reply.message}`)
    return reply.kind === 'known' ? 'known' : 'credited'
  }

  async ofClient(client: Client): Promise<Balance | undefined> {
    return this.parts.ip.look(client.key)
  }

  async ofResource(named: Named): Promise<Balance | undefined> {
    return this.parts.resource.look(this.keyOf(named))
  }
}

class MemoryTicket extends Ticket {
  constructor(
    private readonly tables: Pick<MemoryParts, 'ip' | 'resource'>,
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
