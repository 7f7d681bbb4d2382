import { randomBytes } from 'node:crypto'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { MoneyLedger, RecordChange } from '../../ledger/ledger-port.js'
import type {
  CardEvent,
  CardPage,
  CardProvider,
  CardTaken,
  PaymentSession,
  SessionWish,
} from './card-provider.js'

/** A session of the embedded provider. */
export interface LocalSession extends SessionWish {
  readonly id: string
  readonly state: 'open' | 'paid' | 'refunded'
  readonly paidMs?: number
}

const kind = 'card-session'
/** A quote to its session. */
const quoteKind = 'card-session-of'
const pageMax = 500

/** Test cards: what a card number leads to. */
export const testCards: Readonly<Record<string, 'paid' | 'declined'>> = {
  '4242424242424242': 'paid',
  '4000000000000002': 'declined',
}

/** A provider of cards on this machine: no money moves. For devnet, so that a top-up can be gone through in a browser. */
export class LocalCards implements CardProvider {
  readonly name = 'local'

  constructor(
    private readonly ledger: MoneyLedger,
    /** Where its page is. */
    private readonly base: () => string,
    private readonly now: () => number = Date.now,
  ) {}

  async open(wish: SessionWish): Promise<PaymentSession> {
    const id = `local_${randomBytes(16).toString('hex')}`
    const session: LocalSession = { ...wish, id, state: 'open' }
    await this.#put(session, [{ kind: quoteKind, key: wish.quoteId, value: JSON.stringify(id) }])
    const isPage = wish.method === 'checkout-session' && wish.uiMode === 'hosted'
    const secret = isPage ? null : `${id}_secret_${randomBytes(12).toString('hex')}`
    return {
      id,
      url: isPage ? `${this.base()}/checkout/${id}` : null,
      client_secret: secret,
      payment_method_types: ['card'],
    }
  }

  async session(id: string): Promise<LocalSession | undefined> {
    const stored = await this.ledger.record(kind, id)
    return stored === undefined ? undefined : (JSON.parse(stored.value) as LocalSession)
  }

  /** Charges a test card. Carry out the event (`Cards.handle`) before the payment is acknowledged. */
  async charge(id: string, card: string): Promise<CardEvent | 'declined' | 'unknown'> {
    const session = await this.session(id)
    if (session === undefined) return 'unknown'
    if (testCards[card.replace(/[\s-]/g, '')] !== 'paid') return 'declined'
    if (session.state !== 'open') return paidBy(session)
    const paid: LocalSession = { ...session, state: 'paid', paidMs: this.now() }
    await this.#put(paid)
    return paidBy(paid)
  }

  /** There is no webhook: events come from its own page. */
  read(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  /** Sessions that were paid: events that were not delivered before the end of the program are delivered now. */
  async since(ms: number, after: string | undefined): Promise<CardPage<CardEvent>> {
    const { entries, next } = await this.#page(after)
    const paid = entries.filter(({ state, paidMs = ms }) => state === 'paid' && paidMs >= ms)
    return { entries: paid.map(paidBy), ...(next === undefined ? {} : { next }) }
  }

  async taken(fromMs: number, toMs: number, after: string | undefined): Promise<CardPage<CardTaken>> {
    const { entries, next } = await this.#page(after)
    const taken = entries.flatMap((session) => takenBy(session) ?? [])
    const wanted = taken.filter(({ paidMs }) => paidMs >= fromMs && paidMs < toMs)
    return { entries: wanted, ...(next === undefined ? {} : { next }) }
  }

  async find(payment: string): Promise<CardTaken | undefined> {
    const session = await this.session(payment)
    return session === undefined ? undefined : takenBy(session)
  }

  async refund(payment: string): Promise<true | Refusal> {
    const session = await this.session(payment)
    if (session === undefined) return refuse('unknown', 'self', `no session ${payment}`)
    await this.#put({ ...session, state: 'refunded' })
    return true
  }

  async #page(after: string | undefined): Promise<CardPage<LocalSession>> {
    const page = await this.ledger.records(kind, '', after ?? '', pageMax)
    const entries = page.map(({ value }) => JSON.parse(value) as LocalSession)
    const last = page.length < pageMax ? undefined : page.at(-1)?.key
    return { entries, ...(last === undefined ? {} : { next: last }) }
  }

  /** A session that is charged at this moment stays: its payment is sent back. */
  async gone(quoteId: string): Promise<readonly RecordChange[]> {
    const named = await this.ledger.record(quoteKind, quoteId)
    if (named === undefined) return []
    const stored = await this.ledger.record(kind, JSON.parse(named.value) as string)
    const name: RecordChange = { kind: quoteKind, key: quoteId, value: undefined }
    if (stored === undefined || (JSON.parse(stored.value) as LocalSession).state !== 'open') return [name]
    return [name, { kind, key: stored.key, value: undefined, expected: stored.version }]
  }

  async #put(session: LocalSession, also: readonly RecordChange[] = []): Promise<void> {
    await this.ledger.commit({
      transfers: [],
      records: [{ kind, key: session.id, value: JSON.stringify(session) }, ...also],
    })
  }
}

function paidBy({ id, quoteId, amount, currency, paidMs }: LocalSession): CardEvent {
  const at = paidMs === undefined ? {} : { paidMs }
  return { kind: 'paid', quoteId, payment: id, amount, currency, ...at }
}

function takenBy({ id, quoteId, amount, currency, paidMs, state }: LocalSession): CardTaken | undefined {
  if (paidMs === undefined) return undefined
  const facts = { payment: id, quoteId, amount, currency, paidMs }
  return { ...facts, isRefunded: state === 'refunded', isDisputed: false }
}
