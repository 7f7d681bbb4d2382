import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { iconAddress, iconSvg } from '../http/page.js'
import { palette } from '../http/palette.js'
import { examples } from './page-examples.js'

/**
 * The page that a browser gets at the query address. It has a query with completion, its variables and headers, the answer as
 * a tree, examples, the last queries, and the schema as a list. One answer without anything from elsewhere; the policy lets
 * nothing else in.
 */
const folder = new URL('../../../src/query/page/', import.meta.url)
const file = (name: string): string => readFileSync(new URL(name, folder), 'utf8')

/** All modules as one: what the first ones export is in scope of the last. */
const script = [
  ...['complete.js', 'colour.js', 'history.js'].map((name) => file(name).replace(/^export /gm, '')),
  file('page.js').replace(/^import .*\n/gm, ''),
].join('\n')
const style = palette + file('page.css')
/** JSON inside a script element: the end of the element must not appear in it. */
const shown = JSON.stringify(examples).replaceAll('<', '\\u003c')
const options = examples.map(({ name }) => `<option>${name}</option>`).join('')

/** The whole page. */
export const queryPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><title>GraphQL</title><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><link rel="icon" href="${iconAddress}">
<style>${style}</style>
</head>
<body>
<header><a href="/">${iconSvg}Sluice</a><h1>GraphQL</h1>
<span><label for="example">Example</label> <select id="example">${options}</select></span>
<span><label for="history">History</label> <select id="history"></select>
<button id="clear" type="button">Clear</button></span>
<a class="docs" href="/api-docs">API</a></header>
<section>
<div class="row"><label for="query">Query: Ctrl+Space completes, Ctrl+Enter runs it</label>
<button id="run" type="button">Run</button></div>
<div id="query-place" class="place"><textarea id="query" spellcheck="false" autocomplete="off" autocapitalize="off"
 role="combobox" aria-autocomplete="list"
 aria-expanded="false" aria-controls="offers"></textarea></div>
<label for="variables">Variables (JSON)</label>
<div class="place"><textarea id="variables" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea></div>
<label for="headers">HTTP headers (JSON; not in the history)</label>
<div class="place small"><textarea id="headers" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea></div>
</section>
<section>
<div class="row"><span id="answer-label">Answer</span><button id="fold" type="button">Fold</button>
<button id="unfold" type="button">Unfold</button>
<button id="copy" type="button">Copy</button><span id="time" role="status"></span></div>
<div id="answer" tabindex="0" role="region" aria-labelledby="answer-label"></div>
<details id="schema-place"><summary>Schema</summary><div id="schema"></div></details>
</section>
<div id="mirror" aria-hidden="true"></div>
<ul id="offers" role="listbox" aria-label="Completions" hidden></ul>
<script type="application/json" id="examples">${shown}</script>
<script type="module">${script}</script>
</body>
</html>
`

const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/**
 * The policy that belongs to the page: its own script and style, requests to where it came from, nothing
 * else.
 */
export const queryPagePolicy: string = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
