import { type HtmlPage, inHtml, makePage } from '../../http/page.js'
import { minorDigits } from '../prices/rates.js'
import type { CardQuote } from './card-quote.js'

/** A form in one column. No referrer is sent, because addresses of payments are private. */
export function formPage(title: string, body: string): HtmlPage {
  const { html, lines } = makePage(title, body, { isNarrow: true, hasForms: true })
  return { html, lines: `${lines}\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store` }
}

/** The page where a test card is charged. `note`: what happened last. */
export function checkoutPage(quote: CardQuote, state: 'open' | 'paid', note = ''): HtmlPage {
  const form =
    state === 'paid'
      ? paidPart(quote)
      : `<form method="post"><label>Card number
<input name="card" inputmode="numeric" autocomplete="off" required value="4242 4242 4242 4242"></label>
<button>Pay ${inHtml(amountText(quote))}</button></form>
<p class="quiet"><small>No money moves here. 4242 4242 4242 4242 is paid, 4000 0000 0000 0002 is declined.</small></p>`
  const noteHtml = note === '' ? '' : `<p class="note" role="alert">${inHtml(note)}</p>`
  return formPage(
    'Top up credits',
    `<p class="lead">${inHtml(amountText(quote))} for ${inHtml(forWhat(quote))}</p>
<section><dl><dt>Goes to</dt><dd><code>${inHtml(quote.destination)}</code></dd></dl></section>
<section>${noteHtml}${form}</section>`,
  )
}

/** Credits of a trillion winc each, cut after six digits. */
export function creditsOf(winc: string): string {
  const millionths = BigInt(winc) / 1_000_000n
  const rest = String(millionths % 1_000_000n)
    .padStart(6, '0')
    .replace(/0+$/, '')
  return `${millionths / 1_000_000n}${rest === '' ? '' : `.${rest}`}`
}

function forWhat({ winc, purchase }: CardQuote): string {
  return purchase === undefined ? `${creditsOf(winc)} credits` : `the name ${purchase.name}`
}

/** A gift is redeemed with its number: no mail is sent from here, so the page shows it. */
function paidPart({ id, destination, destinationType }: CardQuote): string {
  if (destinationType !== 'email') return '<p class="note" role="status">Paid. You can close this page.</p>'
  return `<p class="note" role="status">Paid. The gift has the number <code>${inHtml(id)}</code>.</p>
${redeemForm(id, destination)}`
}

function redeemForm(id: string, email: string): string {
  return `<form method="get" action="/v1/redeem"><input type="hidden" name="id" value="${inHtml(id)}">
<input type="hidden" name="email" value="${inHtml(email)}">
<label>Wallet that gets the gift
<input name="destinationAddress" autocomplete="off" required></label>
<button>Redeem the gift</button></form>`
}

/** The page that a letter about a gift leads to. */
export function giftPage(id: string, email: string): HtmlPage {
  return formPage(
    'Redeem a gift',
    `<p class="lead">The gift <code>${inHtml(id)}</code> for ${inHtml(email)} is put into a wallet.</p>
<section>${redeemForm(id, email)}</section>`,
  )
}

/** The client's target for the browser: http(s) only, because anybody can write the query. */
export function safeTarget(url: string | undefined): string | undefined {
  if (url === undefined || url === '' || !URL.canParse(url)) return undefined
  const { protocol, href } = new URL(url)
  return protocol === 'http:' || protocol === 'https:' ? href : undefined
}

/** What is charged, as people read it: `10.00 USD`. */
export function amountText({ amount, currency }: CardQuote): string {
  const digits = minorDigits(currency)
  return `${(amount / 10 ** digits).toFixed(digits)} ${currency.toUpperCase()}`
}
