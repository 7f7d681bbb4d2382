import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { palette } from './palette.js'

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text for HTML, between tags and between quotes. */
export function inHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char)
}

/** The icon of this program. */
export const iconSvg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">\
<rect width="32" height="32" rx="7" fill="#0b62a8"/>\
<path d="M7 6v20M25 6v20" stroke="#fff" stroke-width="3" stroke-linecap="round"/>\
<path d="M7 13c3-3 6 3 9 0s6 3 9 0M7 19c3-3 6 3 9 0s6 3 9 0" stroke="#9fd3ff" stroke-width="2.4" fill="none"/></svg>`

/** The style of every page that is made here. The file lies in the sources: text that is not compiled. */
const style = palette + readFileSync(new URL('../../../src/http/page.css', import.meta.url), 'utf8')

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const styleHash = hashOf(style)
/** The icon as an address, for `link` elements. */
export const iconAddress: string = `data:image/svg+xml,${encodeURIComponent(iconSvg)}`

/** A page in one file, which loads nothing from elsewhere. */
export interface HtmlPage {
  readonly html: string
  /** Header lines, each with CRLF in front: a content security policy that forbids to load anything. */
  readonly lines: string
}

/** A list of links as cards: address, name, what is there. All three are text. */
export function cardsOf(links: readonly (readonly [href: string, name: string, what: string])[]): string {
  const rows = links.map(
    ([href, name, what]) => `<li><a href="${inHtml(href)}"><b>${inHtml(name)}</b>${inHtml(what)}</a></li>`,
  )
  return `<ul class="cards">\n${rows.join('\n')}\n</ul>`
}

/** A size for people: `10.0 MiB`, `512 bytes`. */
export function sizeInWords(bytes: number): string {
  const steps = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  const step = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), steps.length - 1)
  const amount = bytes / 2 ** (10 * step)
  return `${Number.isInteger(amount) ? amount : amount.toFixed(1)} ${steps[step]}`
}

/** What a page has besides its title and body. */
export interface PageExtras {
  /** HTML above the title. */
  readonly over?: string
  /** Runs in the page, and may send requests to this host only. */
  readonly script?: string
  /** Path of a module of this host instead; it may load others of this host. */
  readonly module?: string
  /** Origin that its module may send requests to besides this host. */
  readonly connectsTo?: string
  /** CSS besides that of all pages. */
  readonly style?: string
  /** One column for a form. */
  readonly isNarrow?: boolean
  /** Its forms may be sent. The answer may redirect anywhere, so `form-action` has no list of targets. */
  readonly hasForms?: boolean
  /** Its forms may be sent to this source alone, as a content security policy writes it. */
  readonly formsTo?: string
  /** Where the name of the program leads; absent: `/`. */
  readonly home?: string
}

/** `body` is HTML; `title` is text. */
export function makePage(title: string, body: string, extras: PageExtras = {}): HtmlPage {
  const { over = '', style: own = '', isNarrow = false, home = '/', formsTo = "'none'" } = extras
  const more = own === '' ? '' : `<style>${own}</style>`
  const { runs, policy: scripts } = scriptOf(extras)
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${inHtml(title)}</title><link rel="icon" href="${iconAddress}"><style>${style}</style>${more}</head>
<body${isNarrow ? ' class="narrow"' : ''}><header><a href="${inHtml(home)}">${iconSvg}Sluice</a></header>
<main>${over}<h1>${inHtml(title)}</h1>
${body}
</main>${runs}</body></html>
`
  const ownHash = own === '' ? '' : ` ${hashOf(own)}`
  const loads = `default-src 'none'; style-src ${styleHash}${ownHash}; img-src data:${scripts}`
  const forms = extras.hasForms === true ? '' : `; form-action ${formsTo}`
  const policy = `${loads}; frame-ancestors 'none'; base-uri 'none'${forms}`
  return { html, lines: `\r\nContent-Security-Policy: ${policy}\r\nX-Content-Type-Options: nosniff` }
}

/** The element that runs a script, and what the policy says of it. */
function scriptOf({ script, module, connectsTo }: PageExtras): {
  readonly runs: string
  readonly policy: string
} {
  if (script !== undefined)
    return {
      runs: `<script>${script}</script>`,
      policy: `; script-src ${hashOf(script)}; connect-src 'self'`,
    }
  if (module === undefined) return { runs: '', policy: '' }
  const runs = `<script type="module" src="${inHtml(module)}"></script>`
  const elsewhere = connectsTo === undefined ? '' : ` ${connectsTo}`
  return { runs, policy: `; script-src 'self'; connect-src 'self'${elsewhere}` }
}
