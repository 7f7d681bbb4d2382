import type { Clock } from '../actor/clock.js'
import { expected } from '../format/bug.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { Upstream } from '../http/upstream.js'
import type { ApprovalView, Checked, CreditsPort, Denied, Payer } from './port.js'
import { makeServiceToken } from './service-token.js'

export interface RemoteCreditsOptions {
  /** The payment service, without a trailing slash. */
  readonly url: string
  /** PRIVATE_ROUTE_SECRET of both. */
  readonly secret: string
  /** For one answer: an upload must not wait for long. */
  readonly limitMs: number
  readonly connectionsMax: number
}

interface Told {
  readonly status: number
  readonly text: string
}

const answerMaxBytes = 1 << 20

/** The payment service of another machine, by its protected routes. */
export class RemoteCredits implements CreditsPort {
  readonly #upstream: Upstream
  readonly #base: URL

  constructor(
    private readonly options: RemoteCreditsOptions,
    private readonly clock: Clock,
  ) {
    this.#base = new URL(options.url)
    const { connectionsMax, limitMs } = options
    this.#upstream = new Upstream({
      connections: connectionsMax,
      connect: { timeout: limitMs },
      pipelining: 1,
    })
  }

  async price(bytes: number): Promise<{ readonly winc: string } | Refusal> {
    return wincOf(await this.#ask('price-of-item', { byteCount: String(bytes) }))
  }

  async check({ bytes, ...payer }: Parameters<CreditsPort['check']>[0]): Promise<Checked | Refusal> {
    const told = await this.#ask(`check-balance/${pathOf(payer)}`, {
      ...queryOf(payer),
      byteCount: String(bytes),
    })
    if (isRefusal(told)) return told
    const body = parsed(told)
    const {
      userHasSufficientBalance: isEnough,
      bytesCostInWinc: winc,
      userBalanceInWinc: balance,
    } = body ?? {}
    if (typeof isEnough !== 'boolean' || !isWinc(winc) || !isWinc(balance)) return unreadable(told)
    return { isEnough, winc, balance, isUnknownWallet: told.status === 404 }
  }

  async reserve({
    itemId,
    bytes,
    ...payer
  }: Parameters<CreditsPort['reserve']>[0]): ReturnType<CreditsPort['reserve']> {
    const query = { ...queryOf(payer), byteCount: String(bytes), dataItemId: itemId, settle: 'later' }
    const told = await this.#ask(`reserve-balance/${pathOf(payer)}`, query)
    if (isRefusal(told)) return told
    if (told.status === 402 || told.status === 404) return this.#unpaid({ ...payer, bytes })
    const reserved = wincOf(told)
    return isRefusal(reserved) ? reserved : { paid: true, ...reserved }
  }

  async settle(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    return wincOf(await this.#ask('settle-balance/any/any', { dataItemId: itemId }))
  }

  async refund(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    return wincOf(await this.#ask('refund-balance/any/any', { dataItemId: itemId }))
  }

  async approve(order: Parameters<CreditsPort['approve']>[0]): Promise<ApprovalView | Denied | Refusal> {
    const { itemId, expiresInSeconds: seconds, ...pair } = order
    const expires = seconds === undefined ? {} : { expiresInSeconds: String(seconds) }
    const told = await this.#ask('account/approvals/create', { ...pair, ...expires, dataItemId: itemId })
    return sharedBy<ApprovalView>(told)
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
    return this.#upstream.destroy()
  }

  /** The refusal of a reserve does not say whether the wallet is known: the check does. */
  async #unpaid(order: Parameters<CreditsPort['check']>[0]): ReturnType<CreditsPort['reserve']> {
    const checked = await this.check(order)
    if (isRefusal(checked)) return checked
    const { winc, isUnknownWallet } = checked
    return { paid: false, winc, isUnknownWallet }
  }

  /** Refusals: `late`, `upstream`. Never rejects but for bugs. */
  async #ask(
    path: string,
    query: Readonly<Record<string, string | readonly string[]>>,
  ): Promise<Told | Refusal> {
    const { secret, limitMs } = this.options
    const search = new URLSearchParams(
      Object.entries(query).flatMap(([name, value]) =>
        [value].flat().map((one): [string, string] => [name, one]),
      ),
    )
    const late = new AbortController()
    const timer = this.clock.after(limitMs, () => late.abort())
    try {
      const answer = await this.#upstream.request({
        ...{ origin: this.#base.origin, method: 'GET', signal: late.signal },
        path: `${this.#base.pathname.replace(/\/$/, '')}/v1/${path}?${search}`,
        headers: {
          authorization: `Bearer ${makeServiceToken(secret, this.clock.now())}`,
          'user-agent': 'sluice',
        },
      })
      let size = 0
      const pieces: Buffer[] = []
      for await (const piece of answer.body as AsyncIterable<Buffer>) {
        size += piece.length
        if (size > answerMaxBytes) return refuse('upstream', 'upstream', 'the payment service said too much')
        pieces.push(piece)
      }
      return { status: answer.statusCode, text: Buffer.concat(pieces).toString() }
    } catch (error) {
      if (late.signal.aborted)
        return refuse('late', 'upstream', `the payment service gave no answer in ${limitMs} ms`)
      return refuse('upstream', 'upstream', `the payment service: ${expected(error).message}`)
    } finally {
      timer.cancel()
    }
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

function isWinc(value: unknown): value is string {
  return typeof value === 'string' && /^-?\d+$/.test(value)
}

function wincOf(told: Told | Refusal): { readonly winc: string } | Refusal {
  if (isRefusal(told)) return told
  return told.status === 200 && isWinc(told.text) ? { winc: told.text } : unreadable(told)
}

function sharedBy<Shared extends object>(told: Told | Refusal): Shared | Denied | Refusal {
  if (isRefusal(told)) return told
  const { status, text } = told
  if (status === 400 || status === 402 || status === 404) return { denied: true, status, text }
  const body = parsed(told)
  return status === 200 && body !== undefined ? (body as unknown as Shared) : unreadable(told)
}

function parsed({ text }: Told): Readonly<Record<string, unknown>> | undefined {
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

function unreadable({ status }: Told): Refusal {
  const why = status === 401 ? 'it does not know our PRIVATE_ROUTE_SECRET' : `status ${status}`
  return refuse('upstream', 'upstream', `the payment service: ${why}`)
}
