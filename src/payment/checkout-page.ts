import { inHtml } from '../http/page.js'
import { palette } from '../http/palette.js'
import type { CardQuote } from './cards.js'
import { minorDigits } from './rates.js'

/** Nothing is loaded from elsewhere, and nothing runs. */
export const pageLines = [
  '',
  "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  'X-Content-Type-Options: nosniff',
  'Referrer-Policy: no-referrer',
  'Cache-Control: no-store',
].join('\r\n')

const style =
  palette +
  'body{font:16px/1.5 system-ui,sans-serif;margin:10vh auto;max-width:26rem;padding:0 1rem;' +
  'background:var(--page);color:var(--ink)}h1{font-size:1.3rem}' +
  'input,button{font:inherit;width:100%;box-sizing:border-box;padding:.6rem;margin:.3rem 0;border-radius:.4rem}' +
  'input{border:1px solid var(--line);background:var(--card);color:var(--ink)}' +
  'button{border:0;background:var(--accent);color:var(--card);cursor:pointer}small{color:var(--quiet)}' +
  'p,code{overflow-wrap:anywhere}.note{padding:.6rem;border-radius:.4rem}' +
  '.note[role=status]{background:var(--good-ground)}.note[role=alert]{background:var(--warn-ground)}'

/** The page where a test card is charged. `note`: what happened last. */
export function checkoutPage(quote: CardQuote, state: 'open' | 'paid', note = ''): string {
  const form =
    state === 'paid'
      ? paidPart(quote)
      : `<form method="post"><label>Card number
<input name="card" inputmode="numeric" autocomplete="off" required value="4242 4242 4242 4242"></label>
<button>Pay ${inHtml(amountOf(quote))}</button></form>
<p><small>No money moves here. 4242 4242 4242 4242 is paid, 4000 0000 0000 0002 is declined.</small></p>`
  const said = note === '' ? '' : `<p class="note" role="alert">${inHtml(note)}</p>`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Top up credits</title>
<style>${style}</style></head>
<body><h1>Top up credits</h1><p>${inHtml(amountOf(quote))} for ${inHtml(forWhat(quote))}, to ${inHtml(quote.destination)}</p>
${said}${form}</body></html>
`
}

function forWhat({ winc, purchase }: CardQuote): string {
  return purchase === undefined ? `${winc} winc` : `the name ${purchase.name}`
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
<label>Wallet that gets the gift<input name="destinationAddress" autocomplete="off" required></label>
<button>Redeem the gift</button></form>`
}

/** The page that a letter about a gift leads to. */
export function giftPage(id: string, email: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Redeem a gift</title>
<style>${style}</style></head>
<body><h1>Redeem a gift</h1><p>The gift <code>${inHtml(id)}</code> for ${inHtml(email)} is put into a wallet.</p>
${redeemForm(id, email)}</body></html>
`
}

/** Where the client said that the browser goes: http(s) only, since it comes from a query that anybody may write. */
export function safeTarget(url: string | undefined): string | undefined {
  if (url === undefined || url === '' || !URL.canParse(url)) return undefined
  const { protocol, href } = new URL(url)
  return protocol === 'http:' || protocol === 'https:' ? href : undefined
}

function amountOf({ amount, currency }: CardQuote): string {
  const digits = minorDigits(currency)
  return `${(amount / 10 ** digits).toFixed(digits)} ${currency.toUpperCase()}`
}
