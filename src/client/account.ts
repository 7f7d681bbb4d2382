import type {
  CheckoutSession,
  CreditBalance,
  CreditSharesPage,
  CurrencyAmount,
  FiatEstimate,
  FiatQuote,
  FiatRates,
  HistoryPage,
  PriceAdjustment,
  SupportedCurrencies,
  TokenQuote,
  TopUpResult,
  UploadCost,
} from './account-answers.js'
import { ceilDivided, decimalText, tokenDecimals, wincOf } from './amounts.js'
import { ClientError } from './errors.js'
import { fieldsOfAnswer, type RemoteService, type ServiceAnswer } from './service.js'
import { signedHeaders } from './signed-headers.js'
import type { ClientSigner } from './signer.js'

const zeros: CreditBalance = {
  winc: '0',
  controlledWinc: '0',
  effectiveBalance: '0',
  givenApprovals: [],
  receivedApprovals: [],
}

/** The payment service: balances, prices, top-ups. */
export class PaymentAccount {
  constructor(
    private readonly service: RemoteService,
    private readonly signer: ClientSigner | undefined,
    private readonly token: string,
  ) {}

  #signer(what: string): ClientSigner {
    if (this.signer !== undefined) return this.signer
    throw new ClientError('no-signer', `${what} needs a signer`, 'give the client a signer')
  }

  async #json(path: string, headers?: Record<string, string>): Promise<Readonly<Record<string, unknown>>> {
    return fieldsOfAnswer(await this.service.ask({ path: `/v1${path}`, ...(headers && { headers }) }), path)
  }

  /** Balance of a wallet; the signer's where no address is given. A wallet that nobody knows has zeros. */
  async getBalance(address: string = this.#signer('your balance').address): Promise<CreditBalance> {
    const path = `/v1/account/balance/${this.token}?address=${encodeURIComponent(address)}`
    const answer = await this.service.ask({ path, accepted: [200, 404] })
    if (answer.status === 404) return zeros
    const fields = fieldsOfAnswer(answer, 'the balance') as Partial<CreditBalance>
    const winc = wholeText(fields.winc ?? '0', 'the balance')
    const effectiveBalance = wholeText(fields.effectiveBalance ?? winc, 'the balance')
    return { ...zeros, controlledWinc: winc, ...fields, effectiveBalance, winc }
  }

  /** Free bytes that a wallet has left: null without a limit, 0 where nothing is free. */
  async getFreeStatus(
    address: string = this.#signer('your free allowance').address,
  ): Promise<{ readonly bytesRemaining: number | null }> {
    const path = `/v1/account/free?address=${encodeURIComponent(address)}`
    const answer = await this.service.ask({ path, accepted: [200, 404] })
    const { bytesRemaining } = (answer.json ?? {}) as { bytesRemaining?: unknown }
    return { bytesRemaining: typeof bytesRemaining === 'number' ? bytesRemaining : null }
  }

  /** Payments of the signer, newest first. `limit`: 1 to 100. */
  async getPaymentHistory({
    limit = 50,
    cursor,
  }: {
    limit?: number
    cursor?: string
  } = {}): Promise<HistoryPage> {
    if (!Number.isInteger(limit) || limit < 1 || limit > 100)
      throw new ClientError('invalid-input', `limit is ${limit}`, 'give 1 to 100')
    const query = `?limit=${limit}${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
    const headers = await signedHeaders(this.#signer('your history'))
    const page = (await this.#json(`/account/payments${query}`, headers)) as Partial<HistoryPage>
    return { payments: page.payments ?? [], hasMore: page.hasMore === true, cursor: page.cursor ?? null }
  }

  /** What uploads of these sizes cost, each for itself: prices have a part for each item, so they do not add up by bytes. */
  async getUploadCosts({ bytes }: { readonly bytes: readonly number[] }): Promise<UploadCost[]> {
    const costs = bytes.map(async (count) => {
      const price = await this.#json(`/price/bytes/${count}`)
      return { ...price, winc: wholeText(price.winc, 'the price') } as unknown as UploadCost
    })
    return Promise.all(costs)
  }

  /** Credits for money, by card. Promo codes need a signer. */
  async getWincForFiat({
    amount,
    promoCodes = [],
  }: {
    readonly amount: CurrencyAmount
    readonly promoCodes?: readonly string[]
  }): Promise<FiatQuote> {
    if (promoCodes.length > 0) this.#signer('a promo code')
    const destination = this.signer?.address ?? 'placeholder'
    const codes = promoCodes.length === 0 ? '' : `&promoCode=${encodeURIComponent(promoCodes.join(','))}`
    const query = `?destinationAddress=${encodeURIComponent(destination)}${codes}`
    const quote = await this.#json(`/price/${amount.currency}/${amount.amount}${query}`)
    const { actualPaymentAmount } = quote
    return {
      ...quote,
      paymentAmount: actualPaymentAmount,
      adjustments: quote.adjustments ?? [],
    } as unknown as FiatQuote
  }

  /** Credits for an amount of the token, in its smallest unit. */
  async getWincForToken({
    tokenAmount,
  }: {
    readonly tokenAmount: string | bigint | number
  }): Promise<TokenQuote> {
    const quote = await this.#json(`/price/${this.token}/${tokenAmount}`)
    const { actualPaymentAmount, ...rest } = quote
    const amounts = {
      actualTokenAmount: String(tokenAmount),
      equivalentWincTokenAmount: String(actualPaymentAmount),
    }
    const winc = wholeText(rest.winc, 'the quote')
    return { ...rest, winc, ...amounts, adjustments: rest.adjustments ?? [] } as unknown as TokenQuote
  }

  /** What so many bytes cost in money, rounded up to the currency's smallest unit. */
  async getFiatEstimateForBytes({
    byteCount,
    currency,
  }: {
    readonly byteCount: number
    readonly currency: string
  }): Promise<FiatEstimate> {
    const [costs, rates] = await Promise.all([
      this.getUploadCosts({ bytes: [byteCount] }),
      this.getFiatRates(),
    ])
    const winc = costs[0]?.winc ?? '0'
    const rate = rates.fiat[currency.toLowerCase()]
    if (rate === undefined)
      throw new ClientError('invalid-input', `no rate for ${currency}`, 'ask getSupportedCurrencies')
    const digits = currency.toLowerCase() === 'jpy' ? 1 : 100
    const amount = Math.ceil((Number(winc) / Number(rates.winc)) * rate * digits) / digits
    return { byteCount, amount, currency, winc }
  }

  /** How much of the token so many bytes cost, in whole tokens. */
  async getTokenPriceForBytes({ byteCount }: { readonly byteCount: number }): Promise<{
    readonly tokenPrice: string
    readonly byteCount: number
    readonly token: string
  }> {
    const [cost] = await this.getUploadCosts({ bytes: [byteCount] })
    const decimals = tokenDecimals[this.token] ?? 12
    const quote = await this.getWincForToken({ tokenAmount: 10n ** BigInt(decimals) })
    if (wincOf(quote.winc) === 0n)
      throw new ClientError(
        'malformed-answer',
        'a whole token buys nothing',
        'check the address of the service',
      )
    const base = ceilDivided(wincOf(cost?.winc ?? '0') * 10n ** BigInt(decimals), wincOf(quote.winc))
    return { tokenPrice: decimalText(base, decimals), byteCount, token: this.token }
  }

  /** How much one unit of the network's own token is worth. */
  async getFiatToAR({
    currency,
  }: {
    readonly currency: string
  }): Promise<{ currency: string; rate: number }> {
    return (await this.#json(`/rates/${currency}`)) as unknown as { currency: string; rate: number }
  }

  /** What one GiB costs, fees included. */
  async getFiatRates(): Promise<FiatRates> {
    return (await this.#json('/rates')) as unknown as FiatRates
  }

  async getSupportedCurrencies(): Promise<SupportedCurrencies> {
    return (await this.#json('/currencies')) as unknown as SupportedCurrencies
  }

  async getSupportedCountries(): Promise<readonly string[]> {
    const { json } = await this.service.ask({ path: '/v1/countries' })
    if (Array.isArray(json)) return json as string[]
    throw new ClientError('malformed-answer', 'the countries are no list', 'check the address of the service')
  }

  /** Begins a payment by card; the page to pay on is at `url`. */
  async createCheckoutSession({
    amount,
    owner,
    promoCodes = [],
    uiMode = 'hosted',
  }: {
    readonly amount: CurrencyAmount
    readonly owner: string
    readonly promoCodes?: readonly string[]
    readonly uiMode?: 'hosted' | 'embedded'
  }): Promise<CheckoutSession> {
    const codes = promoCodes.length === 0 ? '' : `&promoCode=${encodeURIComponent(promoCodes.join(','))}`
    const place = `/top-up/checkout-session/${encodeURIComponent(owner)}/${amount.currency}/${amount.amount}`
    const fields = await this.#json(`${place}?token=${this.token}&uiMode=${uiMode}${codes}`)
    const quote = (fields.topUpQuote ?? {}) as Record<string, unknown>
    const session = (fields.paymentSession ?? {}) as Record<string, unknown>
    const paymentAmount = Number(quote.paymentAmount)
    return {
      id: String(session.id),
      url: typeof session.url === 'string' ? session.url : undefined,
      clientSecret: typeof session.client_secret === 'string' ? session.client_secret : undefined,
      winc: String(quote.winstonCreditAmount),
      paymentAmount,
      actualPaymentAmount: paymentAmount,
      quotedPaymentAmount: Number(quote.quotedPaymentAmount),
      adjustments: (fields.adjustments ?? []) as PriceAdjustment[],
      fees: (fields.fees ?? []) as PriceAdjustment[],
    }
  }

  /** The address that takes payments in the token. */
  async receivingAddress(): Promise<string> {
    const { addresses } = (await this.getServiceInfo()) as { addresses?: Record<string, string> }
    const address = addresses?.[this.token]
    if (typeof address === 'string') return address
    throw new ClientError('rejected', `the service takes no ${this.token}`, 'choose another token')
  }

  /** Facts about the service. */
  async getServiceInfo(): Promise<Readonly<Record<string, unknown>>> {
    return this.#json('/info')
  }

  /** Reports a transaction to the service's address. A repeated call returns the present state of the top-up. */
  async submitFundTransaction({ txId }: { readonly txId: string }): Promise<TopUpResult> {
    const path = `/v1/account/balance/${this.token}`
    const body = JSON.stringify({ tx_id: txId })
    return topUpOf(await this.service.ask({ method: 'POST', path, body }))
  }

  /** Approvals that a wallet gave and received; the signer's where no address is given. */
  async getCreditShareApprovals({
    userAddress = this.#signer('your approvals').address,
  }: {
    readonly userAddress?: string
  } = {}): Promise<CreditSharesPage> {
    const path = `/v1/account/approvals/get?userAddress=${encodeURIComponent(userAddress)}`
    const answer = await this.service.ask({ path, accepted: [200, 404] })
    const page = answer.status === 404 ? {} : fieldsOfAnswer(answer, 'approvals')
    const none = { givenApprovals: [], receivedApprovals: [], hasMore: false, cursor: null }
    const { givenApprovals, receivedApprovals, hasMore, cursor } = { ...none, ...page } as CreditSharesPage
    return { givenApprovals, receivedApprovals, hasMore, cursor }
  }
}

/** A whole number as its decimal text. Throws `malformed-answer` for anything else. */
function wholeText(value: unknown, what: string): string {
  if ((typeof value === 'string' || typeof value === 'number') && /^\d{1,40}$/.test(String(value)))
    return String(value)
  throw new ClientError('malformed-answer', `${what} is no whole number`, 'check the address of the service')
}

function topUpOf(answer: ServiceAnswer): TopUpResult {
  const fields = fieldsOfAnswer(answer, 'the top-up')
  const kinds = {
    confirmed: 'creditedTransaction',
    pending: 'pendingTransaction',
    failed: 'failedTransaction',
  } as const
  for (const [status, key] of Object.entries(kinds)) {
    const found = fields[key] as Record<string, unknown> | undefined
    if (found === undefined) continue
    return {
      id: String(found.transactionId),
      status: status as TopUpResult['status'],
      winc: String(found.winstonCreditAmount),
      quantity: String(found.transactionQuantity),
      owner: String(found.transactionSenderAddress ?? found.destinationAddress),
      recipient: String(found.destinationAddress),
      token: String(found.tokenType),
      ...(typeof found.blockHeight === 'number' && { block: found.blockHeight }),
    }
  }
  throw new ClientError('malformed-answer', 'the top-up has no state', 'check the address of the service')
}
