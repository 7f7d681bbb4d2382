import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { palette } from '../http/palette.js'
import { examples } from './page-examples.js'

/**
 * The page that a browser gets at the query address: a query with completion, its variables, the answer, examples, and the
 * schema as a list. One answer without anything from elsewhere; the policy lets nothing else in.
 */
const folder = new URL('../../../src/query/page/', import.meta.url)
const file = (name: string): string => readFileSync(new URL(name, folder), 'utf8')

/** Both modules as one: what the first exports is in scope of the second. */
const script = [
  file('complete.js').replace(/^export /gm, ''),
  file('page.js').replace(/^import .*\n/m, ''),
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
<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<section>
<div class="row"><h1>GraphQL</h1><label for="example">Example</label><select id="example">${options}</select></div>
<label for="query">Query: Ctrl+Space completes, Ctrl+Enter runs it</label>
<textarea id="query" spellcheck="false" autocomplete="off" autocapitalize="off" role="combobox" aria-autocomplete="list"
 aria-expanded="false" aria-controls="offers">${examples[0]?.text ?? ''}</textarea>
<label for="variables">Variables (JSON)</label>
<textarea id="variables" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<div class="row"><button id="run" type="button">Run</button><span id="time" role="status"></span></div>
</section>
<section>
<label id="answer-label">Answer</label><pre id="answer" aria-labelledby="answer-label"></pre>
<details><summary>Schema</summary><div id="schema"></div></details>
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
