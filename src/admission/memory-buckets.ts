import type { Address } from '../actor/mailbox-address.js'
import { isRefusal } from '../format/refusal.js'
import type { KeeperReply, KeeperRequest } from './bucket-messages.js'
import type { Balance } from './bucket-table.js'
import { type Buckets, BucketsUnreachable, type Named, readResourceName } from './buckets.js'
import type { Client, Clients } from './clients.js'
import { LocalBuckets, type LocalParts } from './local-buckets.js'

export interface MemoryParts extends LocalParts {
  readonly clients: Clients
  readonly keeper: Address<KeeperRequest, KeeperReply>
}

/** Buckets in memory that all threads share. Their keeper puts them on disk. */
export class MemoryBuckets extends LocalBuckets implements Buckets {
  constructor(private readonly parts: MemoryParts) {
    super(parts)
  }

  use(): void {
    // Their keeper writes the rules into the memory that all threads share.
  }

  lend(): ReturnType<NonNullable<Buckets['lend']>> {
    const { ip, resource } = this.parts
    return { ip: ip.borrowed, resource: resource.borrowed }
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
