/** The payment service as clients of the network use it: their own library, unmodified. */
import t from 'tap'
import { clientOf, knownWallet } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { run } from '../flow/running.js'
import { miningTransfers, quickTransfers, withoutTurbo as skip, turboLibrary } from '../flow/turbo.js'

interface Balance {
  readonly winc: string
  readonly controlledWinc: string
  readonly effectiveBalance: string
}

/** What of the library is used; it is too large to be a dependency for its types. */
interface TurboUnsigned {
  getUploadCosts(given: { bytes: number[] }): Promise<{ winc: string; adjustments: unknown[] }[]>
  getWincForFiat(given: { amount: unknown }): Promise<Record<string, unknown>>
  getWincForToken(given: { tokenAmount: number }): Promise<Record<string, unknown>>
  getFiatToAR(given: { currency: string }): Promise<{ currency: string; rate: number }>
  getFiatRates(): Promise<{ winc: string; fiat: Record<string, number> }>
  getFiatEstimateForBytes(given: {
    byteCount: number
    currency: string
  }): Promise<{ amount: number; winc: string }>
  getTokenPriceForBytes(given: { byteCount: number }): Promise<{ tokenPrice: string }>
  getSupportedCurrencies(): Promise<{ supportedCurrencies: string[]; limits: Record<string, object> }>
  getSupportedCountries(): Promise<string[]>
  getBalance(address: string): Promise<Balance>
  getCreditShareApprovals(given: {
    userAddress: string
  }): Promise<{ givenApprovals: object[]; receivedApprovals: object[] }>
  createCheckoutSession(given: object): Promise<Record<string, string | number | undefined>>
  submitFundTransaction(given: { txId: string }): Promise<{ status: string }>
}

interface TurboSigned extends TurboUnsigned {
  getBalance(): Promise<Balance>
  getPaymentHistory?(
    given?: object,
  ): Promise<{ payments: Record<string, unknown>[]; hasMore: boolean; cursor: string | null }>
  topUpWithTokens(
    given: object,
  ): Promise<{ id: string; status: string; winc: string; quantity: string; target: string }>
}

interface Turbo {
  readonly TurboFactory: {
    unauthenticated(given: object): TurboUnsigned
    authenticated(given: object): TurboSigned
  }
  readonly ArweaveSigner: new (jwk: object) => object
  USD(amount: number): unknown
  WinstonToTokenAmount(amount: number): unknown
}

const settings = {
  DEVNET_SEED: 'false',
  DEVNET_BLOCK_MS: '0',
  SERVICES: 'gateway,payment',
  PAYMENT_ARWEAVE_CONFIRMATIONS: '10',
  PAYMENT_RECHECK_SECONDS: '1',
}

t.test(
  'prices, a card, a top-up from the chain and its history, by the library of the network',
  { skip },
  async (t) => {
    const { TurboFactory, ArweaveSigner, USD } = await turboLibrary<Turbo>()
    const { urls } = await run(t, t.testdir(), settings)
    const { payment = '', devnet = '', gateway = '' } = urls
    const services = { paymentServiceConfig: { url: payment }, gatewayUrl: gateway, token: 'arweave' }
    const turbo = TurboFactory.unauthenticated(services)

    const [costs] = await turbo.getUploadCosts({ bytes: [1000] })
    t.match(costs, { winc: /^\d+$/, adjustments: [] })
    t.match(await turbo.getWincForToken({ tokenAmount: 1000 }), {
      winc: '766',
      actualTokenAmount: '1000',
      equivalentWincTokenAmount: '1000',
      fees: [{ operatorMagnitude: 0.766 }],
    })
    t.match(await turbo.getWincForToken({ tokenAmount: 10 }), { winc: '7' })
    await t.rejects(turbo.getWincForToken({ tokenAmount: 1 }), /Crypto payment amount is too small!/)
    const ten = await turbo.getWincForFiat({ amount: USD(10) })
    t.match(ten, {
      winc: '1225600000000',
      quotedPaymentAmount: 1000,
      actualPaymentAmount: 1000,
      adjustments: [],
    })
    t.equal((ten.fees as object[]).length, 1)
    t.match(await turbo.getFiatToAR({ currency: 'usd' }), { currency: 'usd', rate: 6.25 })
    const rates = await turbo.getFiatRates()
    t.equal(Object.keys(rates.fiat).length, 10)
    t.match(await turbo.getFiatEstimateForBytes({ byteCount: 2 ** 30, currency: 'usd' }), {
      winc: rates.winc,
    })
    t.match(await turbo.getTokenPriceForBytes({ byteCount: 2 ** 30 }), { tokenPrice: /^\d/ })
    const { supportedCurrencies } = await turbo.getSupportedCurrencies()
    t.equal(supportedCurrencies.length, 10)
    t.strictSame((await turbo.getSupportedCountries()).slice(0, 2), ['United States', 'United Kingdom'])

    const wallet = knownWallet()
    const client = clientOf(devnet)
    const owner = await client.wallets.jwkToAddress(wallet)
    t.match(await turbo.getBalance(owner), { winc: '0' }, 'nobody knows it yet')
    const nothing = { givenApprovals: [], receivedApprovals: [], hasMore: false, cursor: null }
    t.strictSame(await turbo.getCreditShareApprovals({ userAddress: owner }), nothing)

    const signed = TurboFactory.authenticated({
      ...services,
      signer: new ArweaveSigner(wallet),
      tokenTools: await quickTransfers(gateway),
    })
    const session = await signed.createCheckoutSession({ amount: USD(10), owner })
    t.match(session, { winc: '1225600000000', paymentAmount: 1000, url: /^http.*\/checkout\// })
    t.notOk(session.client_secret)
    const pay = (card: string): Promise<Response> =>
      fetch(String(session.url), { method: 'POST', body: new URLSearchParams({ card }), redirect: 'manual' })
    t.equal((await pay('4000000000000002')).status, 402)
    t.match(await signed.getBalance(), { winc: '0' })
    for (const again of [1, 2, 3]) t.equal((await pay('4242 4242 4242 4242')).status, 200, `time ${again}`)
    t.match(await signed.getBalance(), { winc: '1225600000000' }, 'credited once')
    const embedded = await signed.createCheckoutSession({ amount: USD(10), owner, uiMode: 'embedded' })
    t.match(embedded, { client_secret: /./ })
    t.notOk(embedded.url)

    await fetch(`${devnet}/mint/${owner}/1000000000000`)
    // The library waits until an index has the transaction: it must be mined meanwhile, in fewer blocks than it takes to count.
    const mined = miningTransfers(devnet)
    const topUp = await signed.topUpWithTokens({ tokenAmount: 1_000_000, feeMultiplier: 1 })
    await mined()
    t.match(topUp, { status: 'pending', winc: '766000', quantity: '1000000' })
    t.match(await signed.submitFundTransaction({ txId: topUp.id }), { status: 'pending' })
    t.match(await signed.getBalance(), { winc: '1225600000000' }, 'not deep enough')
    await fetch(`${devnet}/mine/10`)
    await eventually(
      'the credits have come',
      async () => (await signed.getBalance()).winc === '1225600766000',
    )
    const again = await Promise.all([1, 2, 3].map(() => signed.submitFundTransaction({ txId: topUp.id })))
    for (const { status } of again) t.equal(status, 'confirmed')
    t.match(await signed.getBalance(), { winc: '1225600766000' }, 'credited once')
    await t.rejects(turbo.submitFundTransaction({ txId: 'A'.repeat(43) }), /Transaction not found/)
    if (signed.getPaymentHistory !== undefined) {
      const first = await signed.getPaymentHistory({ limit: 1 })
      t.match(first, {
        hasMore: true,
        payments: [{ type: 'crypto', wincCredited: '766000', transactionId: topUp.id }],
      })
      const second = await signed.getPaymentHistory({ limit: 1, cursor: first.cursor })
      t.match(second, {
        hasMore: false,
        cursor: null,
        payments: [{ type: 'fiat', paymentAmount: '1000', currencyType: 'usd' }],
      })
    }
  },
)
