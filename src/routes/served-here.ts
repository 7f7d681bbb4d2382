import type { Request } from '../http/exchange.js'
import { inHtml, sizeInWords } from '../http/page.js'
import type { Beside, InfoParts } from './about-gateway.js'

/** Address, name, what is there. */
export type Card = readonly [href: string, name: string, what: string]

/** The host that a visitor wrote, without its port. Undefined: no host that can stand in an address. */
function visitedHost(request: Pick<Request, 'header'>): string | undefined {
  const given = request.header('host') ?? ''
  return /^((?:[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]))(?::\d{1,5})?$/.exec(given)?.[1]?.toLowerCase()
}

const thisMachine = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * Links to the services besides reading. Visitors on this machine get links to the services of this program. Others get the
 * addresses that the operator set, because a service may have another public address or none.
 */
export function doingCards({ bundlers = [], beside }: InfoParts, request: Pick<Request, 'header'>): Card[] {
  const isHere = thisMachine.test(visitedHost(request) ?? '')
  const { upload, payment } = isHere ? (beside ?? {}) : { payment: beside?.publicPayment }
  const own = upload === undefined ? [] : [upload]
  return [
    ...[...new Set([...own, ...bundlers])].map((url): Card => {
      return url === own[0]
        ? [`${url}/upload`, 'Upload', 'store files from this browser']
        : [url, 'Upload', `the upload service at ${new URL(url).host}`]
    }),
    ...(payment === undefined
      ? []
      : [[`${payment}/credits`, 'Buy credits', 'pay for uploads by card'] as const]),
    ['/graphql', 'GraphQL', 'search transactions, items and blocks'],
    ['/api-docs', 'API', 'every path, to read and to try'],
  ]
}

/** What this gateway serves, on which terms: rows of a definition list, as HTML. */
export function servedHere({ beside, sections, vocabulary, bundlers }: InfoParts): string {
  const rows: [string, string][] = [
    ['Content', 'transactions, data items and files of sites, by id; byte ranges too'],
    ['Names', namesOf(beside)],
    ['Index', indexOf(sections, vocabulary.pathPrefix)],
    ['Uploads', uploadsOf(bundlers, beside)],
    ['Limits', limitsOf(beside)],
    ...priceOf(beside),
  ]
  return rows.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join('\n')
}

function namesOf(beside: Beside | undefined): string {
  const { rootHosts = [], resolvers = [] } = beside ?? {}
  if (rootHosts.length === 0) return 'not by host: no root host is set'
  const hosts = rootHosts.map((host) => `<code>{name}.${inHtml(host)}</code>`).join(', ')
  return resolvers.length === 0 ? hosts : `${hosts}, resolved by ${inHtml(resolvers.join(', '))}`
}

function indexOf(sections: InfoParts['sections'], pathPrefix: string): string {
  const { indexes } = sections ?? {}
  const given =
    indexes === undefined
      ? ''
      : `; <a href="${inHtml(pathPrefix)}/indexes">published</a> as signed files for other gateways`
  return `<a href="/graphql">GraphQL</a> over transactions, items and blocks${given}`
}

function uploadsOf(bundlers: readonly string[] = [], beside: Beside | undefined): string {
  if (bundlers.length > 0)
    return `by ${bundlers.map((url) => `<a href="${inHtml(url)}">${inHtml(url)}</a>`).join(', ')}`
  return beside?.upload === undefined
    ? 'not here: this gateway only reads'
    : 'an upload service runs in this program'
}

function limitsOf(beside: Beside | undefined): string {
  const { allowance } = beside ?? {}
  if (allowance === undefined) return 'clients are not limited'
  const { bytes, bytesPerSecond } = allowance
  return `${sizeInWords(bytes)} for each client, and ${sizeInWords(bytesPerSecond)} more each second`
}

function priceOf(beside: Beside | undefined): [string, string][] {
  const { price } = beside ?? {}
  if (price === undefined) return []
  const { perByte, minimum, perGiB } = price
  const each = `${inHtml(perByte)} USDC a byte beyond the limits (x402), at least ${inHtml(minimum)} USDC a payment`
  return [['Price', `${each}; 1 GiB costs ${inHtml(perGiB)} USDC`]]
}

/** Where the operator finds the console, as HTML. Undefined: it is turned off. */
export function consoleHint(
  { beside, vocabulary: { pathPrefix } }: InfoParts,
  request: Pick<Request, 'header'>,
): string | undefined {
  const { console } = beside ?? {}
  if (console === undefined) return undefined
  const { address, port } = console
  const path = `${pathPrefix}/console`
  if (port === 0) return 'The program prints the address of the console when it starts.'
  const host = visitedHost(request)
  const isHere = host !== undefined && thisMachine.test(host)
  const isLocal = /^127\.|^::1$/.test(address)
  if (isHere) {
    const own = isLocal ? (address.includes(':') ? `[${address}]` : address) : host
    const url = inHtml(`http://${own}:${port}${path}`)
    return `<a href="${url}">Console</a>, with the admin key.`
  }
  if (!isLocal) return 'The console has an address of its own, which the program prints when it starts.'
  const there = address.includes(':') ? `[${address}]` : address
  return `The console listens on the gateway's own machine only. Run
<code>ssh -L ${port}:${there}:${port} ${inHtml(host ?? '{host}')}</code>, then open
<code>http://127.0.0.1:${port}${inHtml(path)}</code>.`
}
