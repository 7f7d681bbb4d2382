import type { Clock } from '../../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type {
  ApprovalView,
  Checked,
  CheckOrder,
  CreditsPort,
  Denied,
  Payer,
  WithdrawOrder,
} from '../credits-port.js'
import { type PaymentAnswer, ServiceLink, type ServiceLinkOptions } from './service-link.js'

/** The payment service of another machine, by its protected routes. */
export class RemoteCredits implements CreditsPort {
  readonly #link: ServiceLink

  constructor(options: ServiceLinkOptions, clock: Clock) {
    this.#link = new ServiceLink(options, clock)
  }

  async price(bytes: number): Promise<{ readonly winc: string } | Refusal> {
    return wincOf(await this.#ask('price-of-item', { byteCount: String(bytes) }))
  }

  async check({ bytes, itemId, asker, isQuestion, ...payer }: CheckOrder): Promise<Checked | Refusal> {
    const answer = await this.#ask(`check-balance/${pathOf(payer)}`, {
      ...queryOf(payer),
      byteCount: String(bytes),
      ...(itemId === undefined ? {} : { dataItemId: itemId }),
      ...(asker === undefined ? {} : { asker }),
      ...(isQuestion === undefined ? {} : { question: 'true' }),
    })
    if (isRefusal(answer)) return answer
    if (answer.status === 429) return refuse('busy', 'upstream', 'too many check credits at once')
    const body = parsed(answer)
    const {
      userHasSufficientBalance: isEnough,
      bytesCostInWinc: winc,
      userBalanceInWinc: balance,
    } = body ?? {}
    if (typeof isEnough !== 'boolean' || !isWinc(winc) || !isWinc(balance)) return unreadable(answer)
    return { isEnough, winc, balance, isUnknownWallet: answer.status === 404 }
  }

  async reserve({
    itemId,
    bytes,
    ticket,
    service,
    ...payer
  }: Parameters<CreditsPort['reserve']>[0]): ReturnType<CreditsPort['reserve']> {
    const query = {
      ...queryOf(payer),
      byteCount: String(bytes),
      dataItemId: itemId,
      settle: 'later',
      ...ticketOf(ticket),
      ...(service === undefined ? {} : { service }),
    }
    const answer = await this.#ask(`reserve-balance/${pathOf(payer)}`, query)
    if (isRefusal(answer)) return answer
    if (answer.status === 402 || answer.status === 404) return this.#unpaid({ ...payer, bytes })
    if (answer.status === 409) {
      const elsewhere = answer.text === 'spent' ? 'spent' : 'held'
      return { paid: false, winc: '0', isUnknownWallet: false, elsewhere }
    }
    const reserved = wincOf(answer)
    return isRefusal(reserved) ? reserved : { paid: true, ...reserved }
  }

  async settle(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    return wincOf(await this.#ask('settle-balance/any/any', { dataItemId: itemId }))
  }

  async refund(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    return wincOf(await this.#ask('refund-balance/any/any', { dataItemId: itemId }))
  }

  async withdraw({ itemId, ticket }: WithdrawOrder): Promise<{ readonly winc: string } | Refusal> {
    return wincOf(await this.#ask('refund-balance/any/any', { dataItemId: itemId, ticket }))
  }

  async approve(order: Parameters<CreditsPort['approve']>[0]): Promise<ApprovalView | Denied | Refusal> {
    const { itemId, expiresInSeconds: seconds, ...pair } = order
    const expires = seconds === undefined ? {} : { expiresInSeconds: String(seconds) }
    const answer = await this.#ask('account/approvals/create', { ...pair, ...expires, dataItemId: itemId })
    return sharedBy<ApprovalView>(answer)
  }

  async revoke(
    order: Parameters<CreditsPort['revoke']>[0],
  ): Promise<readonly ApprovalView[] | Denied | Refusal> {
    const { itemId, ...pair } = order
    return sharedBy<readonly ApprovalView[]>(
      await this.#ask('account/approvals/revoke', { ...pair, dataItemId: itemId }),
    )
  }

  close(): Promise<void> {
    return this.#link.close()
  }

  /** The refusal of a reserve does not state whether the wallet is known: the check does. */
  async #unpaid(order: CheckOrder): ReturnType<CreditsPort['reserve']> {
    const checked = await this.check(order)
    if (isRefusal(checked)) return checked
    const { winc, isUnknownWallet } = checked
    return { paid: false, winc, isUnknownWallet }
  }

  /** Refusals: `late`, `upstream`. Never rejects but for bugs. */
  #ask(
    path: string,
    query: Readonly<Record<string, string | readonly string[]>>,
  ): Promise<PaymentAnswer | Refusal> {
    const search = new URLSearchParams(
      Object.entries(query).flatMap(([name, value]) =>
        [value].flat().map((one): [string, string] => [name, one]),
      ),
    )
    return this.#link.ask(`/v1/${path}?${search}`)
  }
}

function pathOf({ signatureType, address }: Payer): string {
  return `${signatureType}/${encodeURIComponent(address)}`
}

function queryOf({ paidBy, directive, alias }: Payer): Record<string, string | readonly string[]> {
  return {
    paidBy,
    ...(directive === undefined ? {} : { paymentDirective: directive }),
    ...(alias === undefined ? {} : { alias }),
  }
}

function ticketOf(ticket: string | undefined): { readonly ticket?: string } {
  return ticket === undefined ? {} : { ticket }
}

function isWinc(value: unknown): value is string {
  return typeof value === 'string' && /^-?\d+$/.test(value)
}

function wincOf(answer: PaymentAnswer | Refusal): { readonly winc: string } | Refusal {
  if (isRefusal(answer)) return answer
  return answer.status === 200 && isWinc(answer.text) ? { winc: answer.text } : unreadable(answer)
}

function sharedBy<Shared extends object>(answer: PaymentAnswer | Refusal): Shared | Denied | Refusal {
  if (isRefusal(answer)) return answer
  const { status, text } = answer
  if (status === 400 || status === 402 || status === 404) return { denied: true, status, text }
  const body = parsed(answer)
  return status === 200 && body !== undefined ? (body as unknown as Shared) : unreadable(answer)
}

function parsed({ text }: PaymentAnswer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function unreadable({ status }: PaymentAnswer): Refusal {
  const why = status === 401 ? 'it does not know our PRIVATE_ROUTE_SECRET' : `status ${status}`
  return refuse('upstream', 'upstream', `the payment service: ${why}`)
}
