import { encodeBase64url } from '../format/base64url.js'
import { cardsOf, type HtmlPage, inHtml, makePage } from '../http/page.js'
import type { InfoParts } from './about-gateway.js'
import { healthOf } from './health.js'

/** Asks this gateway for the newest items of its index, and lists them: content that can be opened at once. */
const script = `
const list = document.getElementById('newest')
const query = '{ transactions(first: 8) { edges { node { id data { size type } tags { name value } } } } }'
const cell = (name, ...parts) => {
  const made = document.createElement('td')
  made.className = name
  made.append(...parts)
  return made
}
const sizeOf = (bytes) => {
  const step = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 4)
  return Number((bytes / 1024 ** step).toFixed(1)) + ' ' + ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][step]
}
const shown = ({ id, data, tags }) => {
  const code = document.createElement('code')
  code.textContent = id
  const link = document.createElement('a')
  link.href = '/' + id
  link.append(code)
  const type = (tags.find(({ name }) => name.toLowerCase() === 'content-type') || {}).value || data.type || 'unknown type'
  const row = document.createElement('tr')
  row.append(cell('', link), cell('quiet', type.split(';')[0]), cell('number', sizeOf(Number(data.size))))
  return row
}
const say = (text) => {
  const row = document.createElement('tr')
  row.append(cell('quiet', text))
  list.replaceChildren(row)
}
fetch('/graphql', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ query }),
})
  .then((answer) => answer.json())
  .then(({ data }) => {
    const rows = data.transactions.edges.map(({ node }) => shown(node))
    if (rows.length === 0) say('The index is empty yet.')
    else list.replaceChildren(...rows)
  })
  .catch(() => say('The index cannot be asked now.'))
`

/** Of this page alone: on a phone a row is two lines, the id above. */
const style = `#newest td:first-child{width:100%}
@media (max-width:40rem){
#newest tr{display:grid;grid-template-columns:1fr auto;padding:.5rem 0;border-bottom:1px solid var(--line)}
#newest tr:last-child{border-bottom:0}#newest td{padding:0;border:0}#newest td:first-child{grid-column:1/-1}}`

/** What a browser gets at `/`: whether the gateway is well, how far it is, and what to try. */
export function landingPage(parts: InfoParts): HtmlPage {
  const { release, network, key, vocabulary } = parts
  const health = healthOf(parts)
  const state =
    health.status === 'ok'
      ? '<span class="pill good">All is well</span>'
      : `<span class="pill bad">${inHtml((health.reasons ?? []).join('; '))}</span>`
  const signed =
    key === undefined
      ? ''
      : `<section><h2>Signed answers</h2><p>Each answer is signed (RFC 9421, Ed25519) with the key
<code>${encodeBase64url(key.publicKey)}</code>.</p></section>`
  const prefix = vocabulary.pathPrefix
  const tiles = [...heights(parts), ['Network', inHtml(network)], ['Release', inHtml(release)]]
  return makePage(
    'A gateway for permanent storage',
    `<p class="lead">Content by id, path or name, proven against the chain. ${state}</p>
<dl class="tiles">${tiles.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join('')}</dl>
<section><h2>Newest in the index</h2><table><tbody id="newest"><tr><td class="quiet">asking</td></tr></tbody></table></section>
<section><h2>Content</h2><dl>
<dt><code>/{id}</code></dt><dd>by the id of its transaction or data item; ranges are answered</dd>
<dt><code>/{id}/{path}</code></dt><dd>a file of a site</dd>
<dt><code>/raw/{id}</code></dt><dd>the bytes as they are</dd></dl></section>
<section><h2>Look around</h2>${cardsOf([
      ['/graphql', 'GraphQL', 'queries over transactions, items and blocks'],
      ['/api-docs', 'All paths', 'what each answers'],
      [`${prefix}/info`, 'Info', 'this page for programs'],
      [`${prefix}/healthcheck`, 'Health', '503 where something is wrong'],
      [`${prefix}/peers`, 'Peers', 'the gateways and nodes that are asked'],
      [`${prefix}/indexes`, 'Indexes', 'the index, given away as signed files'],
    ])}</section>
${signed}`,
    { script, style },
  )
}

/** The chain's height and the index's, as HTML. */
function heights({ tip, following }: InfoParts): [name: string, value: string][] {
  const lag = Math.max(tip.height - following.height, 0)
  const behind = lag === 0 ? '' : `, ${lag} behind`
  const index = following.height < 0 ? '-' : following.height.toLocaleString('en')
  return [
    ['Chain', tip.height < 0 ? '-<small>no node has answered yet</small>' : tip.height.toLocaleString('en')],
    ['Index', `${index}<small>${following.state}${behind}</small>`],
  ]
}
