import { encodeBase64url } from '../format/base64url.js'
import { type HtmlPage, inHtml, makePage } from '../http/page.js'
import type { InfoParts } from './about-gateway.js'
import { healthOf } from './health.js'

/** Asks this gateway for the newest items of its index, and lists them: content that can be opened at once. */
const script = `
const list = document.getElementById('newest')
const query = '{ transactions(first: 8) { edges { node { id data { size type } tags { name value } } } } }'
const shown = ({ id, data, tags }) => {
  const link = document.createElement('a')
  link.href = '/' + id
  link.textContent = id
  const type = (tags.find(({ name }) => name.toLowerCase() === 'content-type') || {}).value || data.type || 'bytes'
  const row = document.createElement('li')
  row.append(link, ' ' + type + ', ' + Number(data.size).toLocaleString() + ' bytes')
  return row
}
fetch('/graphql', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ query }),
})
  .then((answer) => answer.json())
  .then(({ data }) => {
    const rows = data.transactions.edges.map(({ node }) => shown(node))
    list.replaceChildren(...rows)
    if (rows.length === 0) list.textContent = 'The index is empty yet.'
  })
  .catch(() => {
    list.textContent = 'The index cannot be asked now.'
  })
`

/** What a browser gets at `/`: whether the gateway is well, how far it is, and what to try. */
export function landingPage(parts: InfoParts): HtmlPage {
  const { release, network, tip, following, key, vocabulary } = parts
  const health = healthOf(parts)
  const isWell = health.status === 'ok'
  const lag = Math.max(tip.height - following.height, 0)
  const height = tip.height < 0 ? 'no node has answered yet' : `${tip.height}`
  const index =
    following.height < 0 ? following.state : `${following.height} (${following.state}, ${lag} behind)`
  const facts = [
    [
      'Status',
      isWell
        ? '<span class="good">well</span>'
        : `<span class="bad">${inHtml((health.reasons ?? []).join('; '))}</span>`,
    ],
    ['Network', inHtml(network)],
    ['Height of the chain', height],
    ['Height of the index', inHtml(index)],
    ['Release', inHtml(release)],
    ...(key === undefined
      ? []
      : [['Answers are signed by', `<code>${encodeBase64url(key.publicKey)}</code> (Ed25519, RFC 9421)`]]),
  ]
  const prefix = vocabulary.pathPrefix
  const links = [
    ['/graphql', 'GraphQL', 'queries over transactions, items and blocks'],
    ['/api-docs', 'All paths', 'what each answers; for programs: <a href="/openapi.json">openapi.json</a>'],
    [`${prefix}/info`, 'Info', 'this page for programs'],
    [`${prefix}/healthcheck`, 'Health', '503 where something is wrong'],
    [`${prefix}/peers`, 'Peers', 'the gateways and nodes that are asked'],
    [`${prefix}/indexes`, 'Indexes', 'the index, given away as signed files'],
  ]
  return makePage(
    'A gateway for permanent storage',
    `<section><dl>${facts.map(([name = '', value = '']) => `<dt>${name}</dt><dd>${value}</dd>`).join('')}</dl></section>
<section><h2>Newest in the index</h2><ul id="newest"><li class="quiet">asking</li></ul></section>
<section><h2>Ask for</h2><ul>
<li><code>/{id}</code>: content by the id of its transaction or data item; ranges are answered</li>
<li><code>/{id}/{path}</code>: a file of a site; <code>/raw/{id}</code>: the bytes as they are</li>
${links.map(([href = '', name = '', what = '']) => `<li><a href="${href}">${name}</a>: ${what}</li>`).join('\n')}
</ul></section>`,
    script,
  )
}
