import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import type { Request } from '../http/exchange.js'
import { iconAddress, inHtml, sizeInWords } from '../http/page.js'
import { palette } from '../http/palette.js'
import type { Offers, Quote } from './payment-offer.js'
import { inUsdc } from './token-price.js'
import type { Usdc } from './usdc.js'

export interface PaywallOptions {
  /** `/gateway`, or the prefix of the vocabulary. */
  readonly pathPrefix: string
  readonly appName: string
  /** An http(s) address. */
  readonly appLogo?: string
  /** Public; the page then links to the onramp. */
  readonly onrampKey?: string
  /** A path, or an http(s) address: gives session tokens of the onramp, which then needs no key in its address. */
  readonly sessionsAt?: string
  /** 32 random bytes, the same on all threads: seals the sizes that pages name. */
  readonly sealKey: Uint8Array
}

interface Page {
  readonly contentType: string
  /** Each with CRLF in front. */
  readonly lines: string
  readonly body: string
}

/** Behind this and the prefix comes the base64url of where to go after paying. */
export const redirectPath = '/x402/browser-paywall-redirect/'
/** A paid echo. */
export const testPath = '/x402/test'

/** Parameters with which a wallet can add the chain. */
const chains: Readonly<Record<Usdc['network'], object>> = {
  base: {
    chainName: 'Base',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: ['https://mainnet.base.org'],
    blockExplorerUrls: ['https://basescan.org'],
  },
  'base-sepolia': {
    chainName: 'Base Sepolia',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: ['https://sepolia.base.org'],
    blockExplorerUrls: ['https://sepolia.basescan.org'],
  },
}

/** The files of the page, as they lie in the sources: text that is not compiled. */
const folder = new URL('../../../src/admission/paywall/', import.meta.url)

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** JSON for a script element that only holds data: nothing in it can end the element, nor begin a comment. */
function inScript(value: object): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** The page that a browser gets instead of an offer in JSON: small, without anything from elsewhere but the operator's logo. */
export class Paywall {
  readonly #lines: string
  readonly #script = readFileSync(new URL('paywall.js', folder), 'utf8')
  readonly #style = palette + readFileSync(new URL('paywall.css', folder), 'utf8')

  constructor(
    private readonly offers: Offers,
    private readonly options: PaywallOptions,
  ) {
    const logo = options.appLogo === undefined ? '' : ` ${new URL(options.appLogo).origin}`
    const { sessionsAt = '/' } = options
    const sessions = sessionsAt.startsWith('/') ? '' : ` ${new URL(sessionsAt).origin}`
    const policy = [
      "default-src 'none'",
      `script-src ${hashOf(this.#script)}`,
      `style-src ${hashOf(this.#style)}`,
      `img-src 'self' data:${logo}`,
      `connect-src 'self'${sessions}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; ')
    const guards = 'X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer'
    this.#lines = `\r\nContent-Security-Policy: ${policy}\r\n${guards}`
  }

  /** The payment page for a request. Paying on it fills the visitor's bucket and leads back. */
  page(request: Request, quote: Quote): Page {
    const version = this.offers.has(1) ? 1 : 2
    const offer = {
      ...this.#way(request, quote),
      version,
      value: quote.units.toString(),
      chainId: this.offers.usdc.chainId,
      chain: chains[this.offers.usdc.network],
      terms: version === 1 ? this.offers.terms1(quote) : this.offers.terms2(quote),
      ...(this.options.sessionsAt === undefined ? {} : { sessionsAt: this.options.sessionsAt }),
    }
    return { contentType: 'text/html; charset=utf-8', lines: this.#lines, body: this.#html(quote, offer) }
  }

  /** Where this many bytes are sold to a browser on its way to `target` (path and query). */
  redirectTo(target: string, bytes: number): string {
    const way = `${this.options.pathPrefix}${redirectPath}${encodeBase64url(Buffer.from(target))}`
    return `${way}?bytes=${bytes}&seal=${this.#seal(bytes)}`
  }

  /** The size that an address of `redirectTo` names; 0 (which has the lowest price) where the seal is not ours. */
  sealedBytes(query: string): number {
    const given = new URLSearchParams(query)
    const bytes = Number(given.get('bytes'))
    if (!Number.isSafeInteger(bytes) || bytes < 0) return 0
    const seal = Buffer.from(given.get('seal') ?? '')
    const own = Buffer.from(this.#seal(bytes))
    return seal.length === own.length && timingSafeEqual(seal, own) ? bytes : 0
  }

  #seal(bytes: number): string {
    return createHmac('sha256', this.options.sealKey).update(String(bytes)).digest('hex').slice(0, 32)
  }

  /** Where the page pays, and where it goes then. The echo, and the way back itself, are paid where they are. */
  #way(request: Request, { bytes }: Quote): { payAt: string; goTo?: string } {
    const { pathPrefix } = this.options
    const { path, query } = request
    const text = path + (query === '' ? '' : `?${query}`)
    // A path that begins with two slashes would name another host, or one that cannot be.
    const here = URL.canParse(text, 'http://here') ? new URL(text, 'http://here') : undefined
    const target = here?.host === 'here' ? here.pathname + here.search : '/'
    const lower = path.toLowerCase()
    if (lower === `${pathPrefix}${testPath}`) return { payAt: target }
    const start = pathPrefix + redirectPath
    if (!lower.startsWith(start)) return { payAt: this.redirectTo(target, bytes), goTo: target }
    const encoded = decodeBase64url(path.slice(start.length)) ?? new Uint8Array(0)
    return { payAt: target, goTo: redirectTarget(encoded, request.header('host')) ?? '/' }
  }

  #html(quote: Quote, offer: object): string {
    const { appName, appLogo } = this.options
    const { network } = this.offers.usdc
    const test = network === 'base-sepolia'
    const logo = appLogo === undefined ? '' : `<img src="${inHtml(appLogo)}" alt="">`
    const tokens = this.offers.price.tokens(quote.units, quote.bytes)
    return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><link rel="icon" href="${iconAddress}">
<title>Payment required · ${inHtml(appName)}</title><style>${this.#style}</style></head>
<body><main>${logo}<h1>${inHtml(appName)}</h1>
<p>Your free allowance is used up. Pay once to go on.</p>
<p class="price">${inUsdc(quote.units)} <small>USDC</small></p>
<dl><dt>Size</dt><dd>${sizeInWords(quote.bytes)}</dd>
<dt>Gives you</dt><dd>${sizeInWords(tokens * 1024)} from this gateway</dd>
<dt>Network</dt><dd>${test ? 'Base Sepolia (test network)' : 'Base'}</dd>
<dt>Paid to</dt><dd class="id">${this.offers.payTo}</dd></dl>
<button id="pay" type="button" disabled>Connect and pay</button>${this.#onramp()}
<p id="word" role="status" aria-live="polite"></p><pre id="shown" hidden></pre>
<noscript><p>Paying here needs JavaScript. Programs can pay by the x402 protocol.</p></noscript>
</main><script type="application/json" id="offer">${inScript(offer)}</script>
<script type="module">${this.#script}</script></body></html>
`
  }

  #onramp(): string {
    const { onrampKey, sessionsAt } = this.options
    if (this.offers.usdc.network !== 'base') return ''
    if (sessionsAt !== undefined) {
      return `<p class="more"><button id="buy" type="button" class="quiet" disabled>Buy USDC</button></p>`
    }
    if (onrampKey === undefined) return ''
    const way = new URLSearchParams({ appId: onrampKey, defaultAsset: 'USDC', defaultNetwork: 'base' })
    const href = inHtml(`https://pay.coinbase.com/buy/select-asset?${way}`)
    return `<p class="more"><a href="${href}" target="_blank" rel="noopener noreferrer">Buy USDC</a></p>`
  }
}

/** The target after a payment: a path of the request's host, or undefined where it leads elsewhere. */
export function redirectTarget(encoded: Uint8Array, host: string | undefined): string | undefined {
  const text = Buffer.from(encoded).toString('utf8')
  if (text.length > 4096 || /[\s\\\p{Cc}]/u.test(text)) return undefined
  const own = /^\/(?!\/)/.test(text)
  if (!own && !/^https?:\/\//i.test(text)) return undefined
  if (!URL.canParse(text, 'http://here')) return undefined
  const url = new URL(text, 'http://here')
  if (!own && (host === undefined || url.host !== host.toLowerCase() || url.username !== '')) return undefined
  const target = url.pathname + url.search
  // Dots in a path may leave two slashes in front, which would name another host.
  return target.startsWith('//') ? undefined : target + url.hash
}
