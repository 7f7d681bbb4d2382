import type { Meter, Meters } from '../actor/meter.js'
import type { Cell } from '../actor/shared.js'
import type { Request } from '../http/exchange.js'
import type { AnswerPrice, CacheLimits } from '../http/response-cache.js'
import type { AddressThrottle } from './address-throttle.js'
import {
  type Admission,
  type Charge,
  type Denial,
  type Domain,
  domains,
  type Grant,
  isDenial,
  type Payments,
} from './admission-port.js'
import { type BucketKind, type Buckets, type Shortage, type Taking, Ticket, tokensOf } from './buckets.js'
import type { Client, Clients } from './clients.js'

export interface GateParts {
  readonly clients: Clients
  readonly buckets: Buckets
  /** Names (with undername) that are never limited. */
  readonly exemptNames: readonly string[]
  readonly payments?: Payments
  readonly meters: Meters
  readonly throttle: AddressThrottle
  /** Called with each address that a limit refused. */
  readonly onLimited?: (address: string) => void
}

/** Longest delay where no Retry-After is sent: the client may rightly retry at once, for less or with a payment. */
const delayUnsaidMaxMs = 1000

/** The grant for clients and names that are never limited. */
const free: Grant = {
  lines: '',
  returnUnsent() {
    // Nothing was taken.
  },
}

interface Counts {
  readonly requests: Meter
  readonly blockedBytes: Meter
  readonly exceeded: Readonly<Record<BucketKind, Meter>>
  readonly regular: Meter
  readonly paid: Meter
  readonly resourceRegular: Meter
  readonly resourcePaid: Meter
}

/**
 * Decides whether an answer may be sent. Exempt clients and names are never limited. Others use free tokens first, then paid
 * ones. A payment in the request is settled only where these do not suffice, and then only the client's bucket is used. A denied
 * answer takes no tokens. `takeFirst` still takes one for content that is not here, so that probing for free is not possible.
 */
export class Gate implements Admission {
  #names: ReadonlySet<string> = new Set()
  /** Memory that the server reads: changes with the names. */
  readonly #namesCell = { cells: new Int32Array(new SharedArrayBuffer(4)), at: 0 }
  readonly #counts: Readonly<Record<Domain, Counts>>
  readonly #delays: Meter

  constructor(private readonly parts: GateParts) {
    this.#delays = parts.meters.of('rate_limit_holds_total')
    this.use(parts)
    const of = (domain: Domain): [Domain, Counts] => [domain, countsOf(parts.meters, domain)]
    this.#counts = Object.fromEntries(domains.map(of)) as Record<Domain, Counts>
  }

  /** From now on these names are not limited, also in answers from the response cache. */
  use({ exemptNames }: Pick<GateParts, 'exemptNames'>): void {
    this.#names = new Set(exemptNames.map((name) => name.toLowerCase()))
    const { cells, at } = this.#namesCell
    cells[at] = ((cells[at] ?? 0) + 1) | 0
  }

  /** What must hold for the price of an answer by name to count. */
  get namesCondition(): readonly [cell: Cell, least: number, most: number] {
    const { cells, at } = this.#namesCell
    const value = cells[at] ?? 0
    return [this.#namesCell, value, value]
  }

  admit(charge: Charge): Grant | Denial | Promise<Grant | Denial> {
    const { clients, buckets } = this.parts
    const counts = this.#counts[charge.domain ?? 'data']
    counts.requests.add(1)
    const client = clients.of(charge.request)
    if (this.#isExempt(client, charge.name)) return free
    const prepaidTokens = charge.firstTokenTaken === true ? 1 : 0
    const tokens = tokensOf(charge.bytes) - prepaidTokens
    if (tokens === 0) return free
    const taking = buckets.take(client, charge.request, tokens, 'both')
    if (!(taking instanceof Promise)) return this.#outcome(charge, client, taking, counts)
    return taking.then((outcome) => this.#outcome(charge, client, outcome, counts))
  }

  takeFirst(request: Request, name?: string): Denial | boolean | Promise<Denial | boolean> {
    const { clients, buckets, payments, throttle } = this.parts
    const client = clients.of(request)
    if (this.#isExempt(client, name)) return false
    const taking = buckets.take(client, request, 1, 'client')
    const answer = (outcome: Taking): Denial | boolean => {
      if (outcome instanceof Ticket) {
        this.#count(outcome, this.#counts.data)
        return true
      }
      if ('unavailable' in outcome) return unavailable
      // The offer to a client that may pay names the price, which is known only when the content is. So the content is
      // looked up, but only so often.
      const isSold = payments !== undefined
      if (isSold && throttle.mayLookUp(client.address)) return false
      const delayMs = this.#refused(request, client, outcome, this.#counts.data)
      return tooMany(isSold ? { short: 'ip', retrySeconds: 1 } : outcome, false, delayMs)
    }
    return taking instanceof Promise ? taking.then(answer) : answer(taking)
  }

  price(request: Request, name?: string): AnswerPrice | undefined {
    const { buckets } = this.parts
    if (buckets.lend === undefined) return undefined
    return this.#isExemptName(name) ? 'free' : buckets.keyOf?.(request)
  }

  /** What a server needs to take tokens by itself, just as `admit` does. Undefined: the buckets are not in shared memory. */
  lend(): CacheLimits | undefined {
    const { buckets, clients, meters } = this.parts
    const borrowed = buckets.lend?.()
    if (borrowed === undefined) return undefined
    const domain = 'data' satisfies Domain
    const taken = (bucket: BucketKind): number =>
      meters.placeOf(consumedName, { bucket_type: bucket, token_type: 'regular', domain }).at
    const requests = meters.placeOf('rate_limit_requests_total', { domain })
    return {
      ...borrowed,
      ...clients.borrowed,
      meters: requests.cells,
      requests: requests.at,
      ipTokens: taken('ip'),
      resourceTokens: taken('resource'),
    }
  }

  freeDelayMs(request: Request): number {
    const { clients, throttle } = this.parts
    if (!clients.isDirect(request)) return 0
    const client = clients.of(request)
    return client.exempt ? 0 : this.#held(throttle.passed(client.address))
  }

  #isExempt(client: Client, name: string | undefined): boolean {
    return client.exempt || this.#isExemptName(name)
  }

  #isExemptName(name: string | undefined): boolean {
    return name !== undefined && this.#names.size > 0 && this.#names.has(name.toLowerCase())
  }

  #outcome(
    charge: Charge,
    client: Client,
    taking: Taking,
    counts: Counts,
  ): Grant | Denial | Promise<Grant | Denial> {
    if (taking instanceof Ticket) {
      if (charge.firstTokenTaken === true) taking.prepaidTokens = 1
      this.#count(taking, counts)
      return taking
    }
    if ('unavailable' in taking) return unavailable
    const delayMs = this.#refused(charge.request, client, taking, counts)
    // What may be paid for already is not sold once more.
    const payments = taking.isPaidUnknown === true ? undefined : this.parts.payments
    const paying = payments?.pay(charge, client.address)
    if (payments === undefined || paying === undefined) {
      counts.blockedBytes.add(charge.bytes)
      const { capacity } = this.parts.buckets.rules[taking.short]
      const isTooLarge = taking.isPaidUnknown !== true && tokensOf(charge.bytes) > capacity
      return payments === undefined
        ? tooMany(taking, isTooLarge, delayMs)
        : withDelay(payments.demand(charge), delayMs)
    }
    const paid = this.#paid(charge, client, counts, payments, paying)
    return delayMs === 0
      ? paid
      : paid.then((outcome) => (isDenial(outcome) ? withDelay(outcome, delayMs) : outcome))
  }

  /** Counts a refusal. Returns for how many milliseconds the connection is left unread. */
  #refused(request: Request, client: Client, { short }: Shortage, counts: Counts): number {
    const { clients, throttle, onLimited } = this.parts
    counts.exceeded[short].add(1)
    onLimited?.(client.address)
    if (!clients.isDirect(request)) return 0
    return this.#held(throttle.refused(client.address))
  }

  #held(ms: number): number {
    if (ms > 0) this.#delays.add(1)
    return ms
  }

  async #paid(
    charge: Charge,
    client: Client,
    counts: Counts,
    payments: Payments,
    paying: NonNullable<ReturnType<Payments['pay']>>,
  ): Promise<Grant | Denial> {
    const paid = await paying
    if (isDenial(paid)) {
      counts.blockedBytes.add(charge.bytes)
      return paid
    }
    const tokens = tokensOf(charge.bytes) - (charge.firstTokenTaken === true ? 1 : 0)
    const taking = await this.parts.buckets.take(client, charge.request, Math.max(tokens, 1), 'payer')
    if (taking instanceof Ticket) {
      taking.lines = paid.lines
      if (charge.firstTokenTaken === true && tokens > 0) taking.prepaidTokens = 1
      this.#count(taking, counts)
      return taking
    }
    if ('unavailable' in taking || taking.isPaidUnknown === true)
      return { ...unavailable, lines: unavailable.lines + paid.lines }
    // Other answers have used up the tokens of this payment meanwhile, so this one needs another payment.
    counts.blockedBytes.add(charge.bytes)
    const denial = payments.demand(charge)
    return { ...denial, lines: denial.lines + paid.lines }
  }

  #count(ticket: Ticket, counts: Counts): void {
    const regular = ticket.tokens - ticket.paid
    if (regular > 0) counts.regular.add(regular)
    if (ticket.paid > 0) counts.paid.add(ticket.paid)
    const { resourceTokens, paidByResource } = ticket
    if (resourceTokens > paidByResource) counts.resourceRegular.add(resourceTokens - paidByResource)
    if (paidByResource > 0) counts.resourcePaid.add(paidByResource)
  }
}

const consumedName = 'rate_limit_tokens_consumed_total'

function countsOf(meters: Meters, domain: Domain): Counts {
  const exceeded = (limit: BucketKind): Meter =>
    meters.of('rate_limit_exceeded_total', { limit_type: limit, domain })
  const consumed = (bucket: BucketKind, type: string): Meter =>
    meters.of(consumedName, { bucket_type: bucket, token_type: type, domain })
  return {
    requests: meters.of('rate_limit_requests_total', { domain }),
    blockedBytes: meters.of('rate_limit_bytes_blocked_total', { domain }),
    exceeded: { ip: exceeded('ip'), resource: exceeded('resource') },
    regular: consumed('ip', 'regular'),
    paid: consumed('ip', 'paid'),
    resourceRegular: consumed('resource', 'regular'),
    resourcePaid: consumed('resource', 'paid'),
  }
}

const unavailable: Denial = {
  status: 503,
  contentType: 'application/json; charset=utf-8',
  lines: '\r\nRetry-After: 1\r\nCache-Control: no-store',
  body: JSON.stringify({
    error: 'Service Unavailable',
    code: 'SLC_BUSY',
    message: 'Rate limits cannot be checked now',
  }),
  reason: 'the buckets cannot be reached',
}

/**
 * 429 (RFC 6585 section 4): which limit, and when to try again. That is never before the delay is over, so that the connection of
 * a client that obeys Retry-After is never left unread. The bodies are prepared, because a flood is answered with them.
 */
function tooMany({ short, retrySeconds }: Shortage, isTooLarge: boolean, delayMs: number): Denial {
  const { message, body, largeBody } = words[short]
  const seconds = retrySeconds === undefined ? undefined : Math.max(retrySeconds, Math.ceil(delayMs / 1000))
  const retry = seconds === undefined ? '' : `\r\nRetry-After: ${seconds}`
  return {
    status: 429,
    contentType: 'application/json; charset=utf-8',
    lines: `${retry}\r\nCache-Control: no-store`,
    body: isTooLarge ? largeBody : body,
    reason: message,
    delayMs: seconds === undefined ? Math.min(delayMs, delayUnsaidMaxMs) : delayMs,
  }
}

function withDelay(denial: Denial, delayMs: number): Denial {
  return delayMs === 0 ? denial : { ...denial, delayMs: Math.min(delayMs, delayUnsaidMaxMs) }
}

const words = { ip: wordsOf('IP rate limit exceeded'), resource: wordsOf('Resource rate limit exceeded') }

function wordsOf(message: string): { message: string; body: string; largeBody: string } {
  const common = { error: 'Too Many Requests', code: 'SLC_THROTTLED', message }
  const detail = 'This answer is larger than the whole allowance: ask for ranges of it'
  return { message, body: JSON.stringify(common), largeBody: JSON.stringify({ ...common, detail }) }
}
