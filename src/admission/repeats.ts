import type { Meter } from '../actor/meter.js'
import { type Buckets, Ticket, tokensOf } from './buckets.js'
import type { Client, Clients } from './clients.js'
import type { Charge, Fare, Repeats } from './protocol.js'

/** What the limiter reads of a request, kept beyond it. */
const kept = ['host', 'x-forwarded-for', 'x-real-ip']

interface RepeatParts {
  readonly clients: Clients
  readonly buckets: Buckets
  readonly requests: Meter
  readonly count: (ticket: Ticket) => void
  readonly isExempt: (client: Client) => boolean
}

/** Nothing was taken. */
const free: Charge = { short: () => undefined }

/** More answers like one that was granted, each taken for like that one; those of one client in one take. */
export class BucketRepeats implements Repeats {
  readonly #named: Pick<Fare['request'], 'method' | 'path' | 'header'>

  constructor(
    private readonly parts: RepeatParts,
    { request }: Fare,
  ) {
    const headers = new Map(kept.map((name) => [name, request.header(name)]))
    const { method, path } = request
    this.#named = { method, path, header: (name) => headers.get(name) }
  }

  admit(address: string, bytes: number, count: number): Charge | undefined {
    const { clients, buckets, requests } = this.parts
    const client = clients.of({ remoteAddress: address, header: this.#named.header })
    let charge: Charge = free
    if (!this.parts.isExempt(client)) {
      const taking = buckets.take(client, this.#named, tokensOf(bytes) * count, false)
      if (!(taking instanceof Ticket)) return undefined
      this.parts.count(taking)
      charge = taking
    }
    requests.add(count)
    return charge
  }
}
