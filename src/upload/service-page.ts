import { type HtmlPage, inHtml, makePage } from '../http/page.js'

export interface ServicePageFacts {
  /** Host or URL of the gateway that serves what was taken. */
  readonly gateway: string
  /** Of the wallet that signs receipts. */
  readonly address: string
  readonly itemMaxBytes: number
  readonly freeItemBytes: number
  readonly freeWalletBytes: number
  readonly release: string
}

/** What people see who open the upload service in a browser. */
export function servicePage(facts: ServicePageFacts): HtmlPage {
  const { gateway, address, itemMaxBytes, freeItemBytes, freeWalletBytes, release } = facts
  const isLink = /^https?:\/\//.test(gateway)
  const free =
    freeItemBytes === 0
      ? 'nothing'
      : `items up to ${freeItemBytes} bytes, ${freeWalletBytes} bytes for one wallet`
  const rows = [
    ['Takes', `signed data items up to ${itemMaxBytes} bytes`],
    ['Free', free],
    ['Served by', isLink ? `<a href="${inHtml(gateway)}">${inHtml(gateway)}</a>` : inHtml(gateway)],
    ['Signs receipts', `<code>${inHtml(address)}</code>`],
    ['Release', inHtml(release)],
  ]
  return makePage(
    'Uploads for permanent storage',
    `<section><p>This service takes signed data items, answers with a signed receipt, serves them at once, and brings them
onto the chain.</p><dl>${rows.map(([name = '', value = '']) => `<dt>${name}</dt><dd>${value}</dd>`).join('')}</dl></section>
<section><h2>Ask for</h2><ul>
<li><a href="/upload">Upload</a>: files and folders, from this browser; for programs: uploads that can be resumed</li>
<li><code>POST /tx</code>: one signed item as the body; <code>/tx/{id}/status</code>: where it is on its way</li>
<li><code>/chunks/{token}/-1/-1</code>: begins an upload in parts</li>
<li><a href="/info">Info</a>: this page for programs</li>
<li><a href="/api-docs">All paths</a>: what each answers; for programs: <a href="/openapi.json">openapi.json</a></li>
<li><a href="/health">Health</a></li>
</ul></section>`,
  )
}
