import { readFileSync } from 'node:fs'
import type { Described, DescribedService } from './openapi.js'
import { type HtmlPage, inHtml, makePage } from './page.js'

/** Text that is not compiled: the files lie in the sources. */
const file = (name: string): string =>
  readFileSync(new URL(`../../../src/http/api-docs/${name}`, import.meta.url), 'utf8')

/** The page of all paths of a service: a link to each, a filter, requests to try out, and the same with curl. */
export function apiDocsPage(
  table: readonly Described[],
  { title, release, parameters }: DescribedService,
): HtmlPage {
  const sorted = [...table].sort((one, other) => (one.path < other.path ? -1 : 1))
  const ids = new Set<string>()
  const part = (heading: string, isOperators: boolean): string => {
    const rows = sorted.filter(({ operator }) => (operator === true) === isOperators)
    return rows.length === 0
      ? ''
      : `<section><h2>${heading}</h2><ul class="paths">\n${rows.map((row) => rowOf(row, ids)).join('\n')}\n</ul></section>`
  }
  // JSON inside a script element: the end of the element must not appear in it.
  const json = JSON.stringify(parameters).replaceAll('<', '\\u003c')
  return makePage(
    `${title}: paths`,
    `<p class="lead">What each path answers in release ${inHtml(release)}. For programs:
<a href="/openapi.json">openapi.json</a>.</p>
<div class="filter"><input id="filter" type="search" aria-label="Filter the paths"
 placeholder="filter: words of a path or of what it answers" autocomplete="off" spellcheck="false">
<span id="count" class="quiet" role="status"></span></div>
${part('For everybody', false)}${part('For the operator, with the admin key', true)}
<script type="application/json" id="parameters">${json}</script>`,
    { script: file('page.js'), style: file('page.css') },
  )
}

/**
 * The name of an operation in links: `get-chunk-offset-data`. It stays the same as long as method and path do; of two that would
 * be the same the later one gets a number.
 */
function idOf({ methods: [method = ''], path }: Described, taken: Set<string>): string {
  const words = `${method} ${path}`.toLowerCase().match(/[a-z0-9_.]+/g) ?? []
  const id = words.join('-')
  let free = id
  for (let number = 2; taken.has(free); number += 1) free = `${id}-${number}`
  taken.add(free)
  return free
}

function rowOf(one: Described, ids: Set<string>): string {
  const { path, methods, summary, query = [], operator = false, shape } = one
  const search = query.length === 0 ? '' : `?${query.join('&')}`
  const words = methods.map((method) => `<b>${method}</b>`).join('')
  const id = idOf(one, ids)
  const method = methods.includes('GET') ? 'GET' : (methods[0] ?? 'GET')
  // The admin key is no input here: content of others is served on the same host.
  const tries = method === 'GET' && !operator
  const data = {
    words: `${methods.join(' ')} ${path}${search} ${summary}`.toLowerCase(),
    path,
    query: query.join(' '),
    method,
    takes: method === 'GET' ? '' : (shape?.takes?.type ?? ''),
    operator: String(operator),
    tries: String(tries),
  }
  const attributes = Object.entries(data).map(([name, value]) => `data-${name}="${inHtml(value)}"`)
  return `<li id="${id}" ${attributes.join(' ')}>${words} <code>${inHtml(path + search)}</code>
<a class="anchor" href="#${id}" aria-label="Link to this path">#</a><p>${inHtml(summary)}</p>
<details><summary>${tries ? 'Try it' : 'With curl'}</summary></details></li>`
}
