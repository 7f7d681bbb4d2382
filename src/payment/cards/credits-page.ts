import { isRefusal } from '../../format/refusal.js'
import { inHtml } from '../../http/page.js'
import { addressKind } from '../books/wallets.js'
import { isDenied } from '../credits-port.js'
import { currencies, isCurrency, minorDigits } from '../prices/rates.js'
import { amountFault } from '../prices/tariff.js'
import type { PaymentRoute, RouteAnswer, RouteRequest } from '../requests/payment-route.js'
import type { Cards } from './cards.js'
import { amountText, creditsOf, formPage } from './checkout-page.js'

/** Path of the page; `/info` states it. */
export const creditsPath = 'credits'

/** The page on which people buy credits by card: an amount first, then where it is paid. */
export function creditsPageRoute(cards: Cards): PaymentRoute {
  return {
    path: `/${creditsPath}`,
    isRecorded: true,
    summary: 'A page to buy credits on, for a wallet',
    statuses: [200, 400],
    query: ['address', 'currency', 'amount'],
    type: 'text/html',
    answer: (call) => creditsAnswer(cards, call),
  }
}

interface Chosen {
  readonly address: string
  readonly currency: string
  /** In whole units of the currency, as it was typed. */
  readonly amount: string
}

async function creditsAnswer(cards: Cards, { query, client }: RouteRequest): Promise<RouteAnswer> {
  const amount = query.get('amount')?.trim()
  const chosen: Chosen = {
    address: query.get('address')?.trim() ?? '',
    currency: query.get('currency')?.toLowerCase() ?? 'usd',
    amount: amount ?? '10',
  }
  if (amount === undefined) return { status: 200, ...form(chosen) }
  const { currency, address } = chosen
  const kind = addressKind(address)
  if (kind === undefined) return refused(chosen, 'This is no address of a wallet.')
  if (!isCurrency(currency)) return refused(chosen, 'This currency is not taken here.')
  const minor = minorOf(amount, minorDigits(currency))
  const fault = minor === undefined ? 'This is no amount.' : amountFault(currency, minor)
  if (minor === undefined || fault !== undefined) return refused(chosen, fault ?? '')
  const opened = await cards.openSession({
    client,
    method: 'checkout-session',
    destination: address,
    destinationType: kind,
    currency,
    amount: minor,
    codes: [],
    uiMode: 'hosted',
  })
  if (isRefusal(opened)) return refused(chosen, 'Nobody can be paid just now. Try again in a minute.')
  if (isDenied(opened)) return refused(chosen, opened.text)
  const { quote, session } = opened
  const { url } = session
  if (typeof url !== 'string') return refused(chosen, 'Cards are not taken here.')
  return {
    status: 200,
    ...formPage(
      'Buy credits',
      `<p class="lead">${inHtml(amountText(quote))} buy ${inHtml(creditsOf(quote.winc))} credits</p>
<section><dl><dt>They go to</dt><dd><code>${inHtml(address)}</code></dd></dl>
<p><a href="${inHtml(url)}" rel="noreferrer">Pay ${inHtml(amountText(quote))} by card</a></p></section>`,
    ),
  }
}

/** `12.5` in smallest units; undefined where it is no amount. */
function minorOf(text: string, digits: number): bigint | undefined {
  const [, whole = '', part = ''] = /^(\d{1,9})(?:[.,](\d{1,2}))?$/.exec(text) ?? []
  if (whole === '' || part.length > digits) return undefined
  return BigInt(whole + part.padEnd(digits, '0'))
}

function refused(chosen: Chosen, why: string): RouteAnswer {
  return { status: 400, ...form(chosen, why) }
}

function form({ address, currency, amount }: Chosen, why = ''): ReturnType<typeof formPage> {
  const choices = currencies.map(
    (one) => `<option value="${one}"${one === currency ? ' selected' : ''}>${one.toUpperCase()}</option>`,
  )
  const noteHtml = why === '' ? '' : `<p class="note" role="alert">${inHtml(why)}</p>`
  return formPage(
    'Buy credits',
    `<p class="lead">Credits pay for uploads. They belong to a wallet, and do not expire.</p>
<section>${noteHtml}<form method="get" action="${creditsPath}">
<label>Wallet that gets them<input name="address" autocomplete="off" required value="${inHtml(address)}"></label>
<label>Amount<input name="amount" inputmode="decimal" required value="${inHtml(amount)}"></label>
<label>Currency<select name="currency">${choices.join('')}</select></label>
<button>Go on</button></form></section>`,
  )
}
