import { errorCodes, type FailureCode } from './error-codes.js'
import type { Home } from './exchange.js'
import { type HtmlPage, inHtml, makePage } from './page.js'

/** What a page of failure shows. */
interface Failure {
  readonly code: FailureCode
  readonly status: number
  /** What happened; text. */
  readonly words: string
  /** Header lines of the answer. Browsers do not show Retry-After (RFC 9110 section 10.2.3), so the page says it. */
  readonly lines: string
  /** Undefined: the answer has none. */
  readonly requestId: string | undefined
  readonly home: Home
}

/** What people get who open an address that fails: what happened, what to do, what to tell the operator, and a way home. */
export function errorPage({ code, status, words, lines, requestId, home }: Failure): HtmlPage {
  const { title, hint } = errorCodes[code]
  const seconds = /\r\nRetry-After: (\d+)/i.exec(lines)?.[1]
  const again = seconds === undefined ? '' : `<dt>Try again</dt><dd>${inTime(Number(seconds))}</dd>`
  const isTitle = words.toLowerCase() === title.toLowerCase()
  const request =
    requestId === undefined
      ? ''
      : `<dt>Request id</dt><dd><code class="whole">${inHtml(requestId)}</code>
<br><small class="quiet">Quote it if you ask the operator: the log has the request under this id.</small></dd>`
  const href = inHtml(home.href)
  const search = home.hasSearch
    ? `<form class="search" action="${href}" role="search">
<input name="find" aria-label="Id, name or address" placeholder="id, name or address" required
 autocomplete="off" spellcheck="false">
<button>Find</button></form>`
    : ''
  return makePage(
    title,
    `<p class="lead">${isTitle ? '' : `${inHtml(words)}<br>`}${marked(hint)}</p>
<section><dl><dt>Code</dt><dd><code>${code}</code></dd>${again}${request}</dl></section>
${search}<p><a href="${href}">Go to the first page</a></p>`,
    {
      over: `<p class="status">${status}</p>`,
      home: home.href,
      ...(home.hasSearch ? { formsTo: home.href.startsWith('/') ? "'self'" : home.href } : {}),
    },
  )
}

/** Text for HTML in which words between backticks are code. */
function marked(text: string): string {
  return inHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}

/** A wait for people, never shorter than it is. */
function inTime(seconds: number): string {
  const [count, unit] =
    seconds < 120
      ? [seconds, 'second']
      : seconds < 7200
        ? [Math.ceil(seconds / 60), 'minute']
        : [Math.ceil(seconds / 3600), 'hour']
  return `in ${count} ${unit}${count === 1 ? '' : 's'}`
}
