import { leavingReason } from '../../actor/stopping.js'
import { cardsOf, type HtmlPage, inHtml, makePage } from '../../http/page.js'
import { publicShortly, takesPages } from '../../http/small-answer.js'
import { json, type PaymentRoute, plainAnswer } from './payment-route.js'

/** The routes with facts about the service. */
export interface ServiceInfo {
  readonly version: string
  /** Token to the address that payments go to. */
  readonly addresses: Readonly<Record<string, string>>
  /** Where people buy credits, from the address of the service on. */
  readonly creditsPage: string
  /** Serves what was uploaded; '': none is known. */
  readonly gateway: string
}

/** What the service is, and whether it is well. */
export function serviceInfoRoutes(info: ServiceInfo): PaymentRoute[] {
  const about = { summary: 'The service, and where payments go', statuses: [200] }
  const page = frontPage(info)
  const varying = `${publicShortly}\r\nVary: Accept`
  return [
    {
      ...about,
      path: '/',
      summary: 'The service: a page for browsers, JSON for programs',
      answer: async ({ request }) =>
        takesPages(request)
          ? { status: 200, html: page.html, lines: page.lines + varying }
          : json(info, varying),
    },
    ...['/info', '/v1', '/v1/info'].map((path) => ({
      ...about,
      path,
      answer: async () => json(info, publicShortly),
    })),
    {
      path: '/health',
      summary: 'Whether new requests may come',
      statuses: [200, 503],
      type: 'text/plain',
      answer: async () =>
        leavingReason() === undefined ? plainAnswer(200, 'OK') : plainAnswer(503, 'Stopping'),
    },
  ]
}

/** What people see who open the payment service in a browser. */
function frontPage({ version, addresses, gateway, creditsPage }: ServiceInfo): HtmlPage {
  const rows = Object.entries(addresses).map(
    ([token, address]) => `<dt>${inHtml(token)}</dt><dd><code>${inHtml(address)}</code></dd>`,
  )
  const paid =
    rows.length === 0 ? '' : `<section><h2>Payments on chains go to</h2><dl>${rows.join('')}</dl></section>`
  return makePage(
    'Credits for permanent storage',
    `<p class="lead">This service sells credits, which pay for uploads, and keeps the accounts of them.
Release ${inHtml(version)}${gateway === '' ? '' : `, for uploads that ${inHtml(gateway)} serves`}.</p>
${paid}<section><h2>In this browser</h2>${cardsOf([
      [`/${creditsPage}`, 'Buy credits', 'by card, for any wallet'],
      ['/v1/rates', 'Rates', 'what a GiB costs, in winc and in currencies'],
      ['/v1/currencies', 'Currencies', 'what cards may pay in'],
      ['/api-docs', 'All paths', 'what each answers'],
      ['/health', 'Health', 'whether it answers'],
    ])}</section>`,
  )
}
