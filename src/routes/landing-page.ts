import { encodeBase64url } from '../format/base64url.js'
import type { Request } from '../http/exchange.js'
import { cardsOf, type HtmlPage, inHtml, makePage } from '../http/page.js'
import type { InfoParts } from './about-gateway.js'
import { healthOf } from './health.js'
import { consoleHint, doingCards, servedHere } from './served-here.js'

/** Asks this gateway for the newest items of its index, and lists them: content that can be opened at once. */
const script = `
const list = document.getElementById('newest')
const fields = '{ edges { node { id data { size type } tags { name value } } } }'
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
const runQuery = (query, variables) =>
  fetch('/graphql', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  })
    .then((answer) => answer.json())
    .then(({ data }) => data)
const show = ({ edges }, none) => {
  if (edges.length === 0) say(none)
  else list.replaceChildren(...edges.map(({ node }) => shown(node)))
}
const unreachable = () => say('The index cannot be reached now.')
const newest = () =>
  runQuery('{ transactions(first: 8) ' + fields + ' }')
    .then(({ transactions }) => show(transactions, 'The index is empty yet.'))
    .catch(unreachable)

// An id opens at once; a name is resolved; all else may be an address, whose newest items are listed.
const form = document.getElementById('search')
const field = form.elements.find
const items = async (address) => {
  const { transactions } = await runQuery('query($who: String!) { transactions(owners: [$who], first: 8) ' + fields + ' }', {
    who: address,
  })
  document.getElementById('newest-title').textContent = 'Newest of ' + address
  show(transactions, 'The index knows no content of this id, name or address.')
}
const find = async (text) => {
  if (/^[A-Za-z0-9_-]{43}$/.test(text)) {
    const { transaction } = await runQuery('query($id: ID!) { transaction(id: $id) { id } }', { id: text })
    if (transaction !== null) return location.assign('/' + text)
  } else if (/^[a-z0-9_-]{1,120}$/i.test(text)) {
    const answer = await fetch(form.dataset.resolver + text.toLowerCase())
    if (answer.ok) return location.assign('/' + (await answer.json()).txId)
  }
  await items(text)
}
const search = () => {
  const text = field.value.trim()
  form.after(list.closest('section'))
  if (text !== '') void find(text).catch(unreachable)
}
form.addEventListener('submit', (event) => {
  event.preventDefault()
  search()
})
// Pages of failures send people here with what they look for.
const wanted = new URLSearchParams(location.search).get('find')
if (wanted !== null) {
  field.value = wanted.slice(0, 200)
  search()
} else newest()
`

/** The style of this page alone: on a phone a row is two lines, the id above. */
const style = `#newest-title{overflow-wrap:anywhere}
#newest td:first-child{width:100%}#newest td:nth-child(2){white-space:nowrap}
@media (max-width:40rem){
#newest tr{display:grid;grid-template-columns:1fr auto;padding:.5rem 0;border-bottom:1px solid var(--line)}
#newest tr:last-child{border-bottom:0}#newest td{padding:0;border:0}#newest td:first-child{grid-column:1/-1}
#newest td:nth-child(2){white-space:normal}}`

/** What a browser gets at `/`: whether the gateway is well, what people can do here, what is served, and how far it is. */
export function landingPage(parts: InfoParts, request: Pick<Request, 'header'>): HtmlPage {
  const { release, network, key, vocabulary } = parts
  const health = healthOf(parts)
  const state =
    health.status === 'ok'
      ? '<span class="pill good">All is well</span>'
      : `<span class="pill bad">${inHtml((health.reasons ?? []).join('; '))}</span>`
  const signed =
    key === undefined
      ? ''
      : `<dt>Signed</dt><dd>each answer, by RFC 9421 with the Ed25519 key
<code>${encodeBase64url(key.publicKey)}</code></dd>`
  const prefix = vocabulary.pathPrefix
  const tiles = [...heights(parts), ['Network', inHtml(network)], ['Release', inHtml(release)]]
  const console = consoleHint(parts, request)
  return makePage(
    'A gateway for permanent storage',
    `<p class="lead">Open content by its id, by the path of a site, or by a name. ${state}</p>
<form id="search" class="search" role="search" data-resolver="${inHtml(`${prefix}/resolver/`)}">
<input name="find" aria-label="Id, name or address" placeholder="id, name or address" autocomplete="off" spellcheck="false">
<button>Find</button></form>
<section><h2>What you can do here</h2>${cardsOf(doingCards(parts, request))}</section>
<dl class="tiles">${tiles.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join('')}</dl>
<section><h2 id="newest-title">Newest in the index</h2>
<table><tbody id="newest"><tr><td class="quiet">asking</td></tr></tbody></table></section>
<section><h2>What is served here</h2><dl>
${servedHere(parts)}
${signed}</dl></section>
<section><h2>Addresses</h2><dl>
<dt><code>/{id}</code></dt><dd>content by the id of its transaction or data item</dd>
<dt><code>/{id}/{path}</code></dt><dd>a file of a site</dd>
<dt><code>/raw/{id}</code></dt><dd>the bytes as they are</dd></dl></section>
<section><h2>For programs and operators</h2>${cardsOf([
      [`${prefix}/info`, 'Info', 'this page for programs'],
      ['/openapi.json', 'OpenAPI', 'the description of every path'],
      [`${prefix}/healthcheck`, 'Health', '503 where something is wrong'],
      [`${prefix}/peers`, 'Peers', 'the gateways and nodes that are used'],
    ])}${console === undefined ? '' : `<p>${console}</p>`}</section>`,
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
