import { createHash } from 'node:crypto'
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

const style = `${palette}*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 3rem}
header{display:flex;align-items:center;gap:.7rem;margin-bottom:1rem}header svg{width:2.2rem;height:2.2rem;flex:none}
h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:0 0 .5rem}
a{color:var(--accent)}p{margin:.4rem 0}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem;margin:0 0 1rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:0}
dt{color:var(--quiet)}dd{margin:0;overflow-wrap:anywhere}
ul{margin:0;padding-left:1.2rem}li{margin:.2rem 0;overflow-wrap:anywhere}
code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0}
.wide{overflow-x:auto}.quiet{color:var(--quiet)}.good{color:var(--good)}.bad{color:var(--bad)}
@media (max-width:30rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}}`

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const styleHash = hashOf(style)
const icon = `data:image/svg+xml,${encodeURIComponent(iconSvg)}`

/** A page in one file, which loads nothing from elsewhere. */
export interface HtmlPage {
  readonly html: string
  /** Header lines, each with CRLF in front: a content security policy that forbids to load anything. */
  readonly lines: string
}

/** `body` is HTML; `title` is text. A `script` may send requests to this host only. */
export function makePage(title: string, body: string, script?: string): HtmlPage {
  const runs = script === undefined ? '' : `<script>${script}</script>`
  const policy = script === undefined ? '' : `; script-src ${hashOf(script)}; connect-src 'self'`
  return pageOf({ title, body, style: '', runs, policy })
}

/** The same with scripts in files of this host, which may ask this host and nobody else, and styles of its own. */
export function makeModulePage(
  title: string,
  body: string,
  { script, style }: { readonly script: string; readonly style: string },
): HtmlPage {
  const runs = `<script type="module" src="${inHtml(script)}"></script>`
  return pageOf({ title, body, style, runs, policy: "; script-src 'self'; connect-src 'self'" })
}

interface PageParts {
  readonly title: string
  readonly body: string
  /** Besides that of all pages. */
  readonly style: string
  readonly runs: string
  readonly policy: string
}

function pageOf({ title, body, style: own, runs, policy: scripts }: PageParts): HtmlPage {
  const more = own === '' ? '' : `<style>${own}</style>`
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${inHtml(title)}</title><link rel="icon" href="${icon}"><style>${style}</style>${more}</head>
<body><main><header>${iconSvg}<h1>${inHtml(title)}</h1></header>
${body}
</main>${runs}</body></html>
`
  const ownHash = own === '' ? '' : ` ${hashOf(own)}`
  const loads = `default-src 'none'; style-src ${styleHash}${ownHash}; img-src data:${scripts}`
  const policy = `${loads}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`
  return { html, lines: `\r\nContent-Security-Policy: ${policy}\r\nX-Content-Type-Options: nosniff` }
}
