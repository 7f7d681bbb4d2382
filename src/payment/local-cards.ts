import { randomBytes } from 'node:crypto'
import { type Refusal, refuse } from '../format/refusal.js'
import type { MoneyLedger } from '../ledger/port.js'
import type { CardEvent, CardProvider, PaymentSession, SessionWish } from './card-provider.js'

/** A session of the embedded provider. */
export interface LocalSession extends SessionWish {
  readonly id: string
  readonly state: 'open' | 'paid' | 'refunded'
}

const kind = 'card-session'

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
  ) {}

  async open(wish: SessionWish): Promise<PaymentSession> {
    const id = `local_${randomBytes(16).toString('hex')}`
    const session: LocalSession = { ...wish, id, state: 'open' }
    await this.#put(session)
    const isPage = wish.method === 'checkout-session' && wish.uiMode === 'hosted'
    const secret = isPage ? null : `${id}_secret_${randomBytes(12).toString('hex')}`
    return {
      id,
      url: isPage ? `${this.base()}/checkout/${id}` : null,
      client_secret: secret,
      payment_method_types: ['card'],
    }
  }

  async find(id: string): Promise<LocalSession | undefined> {
    const stored = await this.ledger.record(kind, id)
    return stored === undefined ? undefined : (JSON.parse(stored.value) as LocalSession)
  }

  /** Charges a test card. The event must be heard before anybody is told that it is paid. */
  async charge(id: string, card: string): Promise<CardEvent | 'declined' | 'unknown'> {
    const session = await this.find(id)
    if (session === undefined) return 'unknown'
    if (testCards[card.replace(/[\s-]/g, '')] !== 'paid') return 'declined'
    if (session.state === 'open') await this.#put({ ...session, state: 'paid' })
    return paidBy(session)
  }

  /** There is no webhook: events come from its own page. */
  read(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  /** Sessions that were paid: what was not heard before the end of the program is heard now. */
  async since(): Promise<readonly CardEvent[]> {
    const found: CardEvent[] = []
    let after = ''
    for (;;) {
      const page = await this.ledger.records(kind, '', after, 500)
      for (const { value } of page) {
        const session = JSON.parse(value) as LocalSession
        if (session.state === 'paid') found.push(paidBy(session))
      }
      const last = page.at(-1)
      if (last === undefined || page.length < 500) return found
      after = last.key
    }
  }

  async refund(payment: string): Promise<true | Refusal> {
    const session = await this.find(payment)
    if (session === undefined) return refuse('unknown', 'self', `no session ${payment}`)
    await this.#put({ ...session, state: 'refunded' })
    return true
  }

  async #put(session: LocalSession): Promise<void> {
    await this.ledger.commit({
      transfers: [],
      records: [{ kind, key: session.id, value: JSON.stringify(session) }],
    })
  }
}

function paidBy({ id, quoteId, amount, currency }: LocalSession): CardEvent {
  return { kind: 'paid', quoteId, payment: id, amount, currency }
}
