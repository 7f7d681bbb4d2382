import { cardsOf, type HtmlPage, inHtml, makePage, sizeInWords } from '../../http/page.js'
import type { FreeRules } from '../records/free-pools.js'
import { receiptVersion } from '../records/receipt.js'

export interface ServicePageFacts {
  /** Host or URL of the gateway that serves what was taken; '': none is known. */
  readonly gateway: string
  /** Address of the wallet that signs receipts. */
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
      : `items up to ${sizeInWords(freeItemBytes)}, ${sizeInWords(freeWalletBytes)} for one wallet`
  const rows = [
    ['Takes', `signed data items up to ${sizeInWords(itemMaxBytes)}`],
    ['Free', free],
    ...(gateway === ''
      ? []
      : [['Served by', isLink ? `<a href="${inHtml(gateway)}">${inHtml(gateway)}</a>` : inHtml(gateway)]]),
    ['Signs receipts', `<code>${inHtml(address)}</code>`],
    ['Release', inHtml(release)],
  ]
  return makePage(
    'Uploads for permanent storage',
    `<p class="lead">This service takes signed data items, answers with a signed receipt, serves them at once, and brings them
onto the chain.</p>
<section><dl>${rows.map(([name = '', value = '']) => `<dt>${name}</dt><dd>${value}</dd>`).join('')}</dl></section>
<section><h2>In this browser</h2>${cardsOf([
      ['/upload', 'Upload', 'files and folders, from this browser'],
      ['/api-docs', 'All paths', 'what each answers'],
      ['/info', 'Info', 'this page for programs'],
      ['/healthcheck', 'Health', '503 where no uploads are taken'],
    ])}</section>
<section><h2>For programs</h2><ul>
<li><code>POST /tx</code>: one signed item as the body; <code>/tx/{id}/status</code>: where it is on its way</li>
<li><code>POST /upload</code>: an upload that can be resumed</li>
<li><code>/chunks/{token}/-1/-1</code>: begins an upload in parts</li>
<li><a href="/openapi.json">openapi.json</a>: all paths</li>
</ul></section>`,
  )
}

/** The content of `/info`: the address of the service's wallet, where its items are served, and its limits, in bytes. */
export function serviceInfo(
  given: {
    readonly gateway: string
    readonly free: FreeRules
    readonly itemMaxBytes: number
    readonly sandbox?: { readonly keepMs: number }
  },
  address: string,
  gateways: readonly string[],
): object {
  const { gateway, free, itemMaxBytes, sandbox } = given
  return {
    version: receiptVersion,
    addresses: { arweave: address },
    gateway,
    gateways,
    freeUploadLimitBytes: free.itemMaxBytes,
    freeTier: { lifetimeBytes: free.walletBytes, ipBytes: free.rangeBytes, maxItemBytes: free.itemMaxBytes },
    limits: { maxItemBytes: itemMaxBytes },
    ...(sandbox === undefined ? {} : { sandbox: { keepSeconds: sandbox.keepMs / 1000 } }),
  }
}
