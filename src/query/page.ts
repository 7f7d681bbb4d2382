import { createHash } from 'node:crypto'

/**
 * The page that a browser gets at the query address: a query, its variables, the answer, and the schema's
 * fields as a list. One file without anything from elsewhere; the policy lets nothing else in.
 */
const script = `
const by = (id) => document.getElementById(id)
const ask = async (query, variables) => {
  const answer = await fetch(location.pathname, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify({ query, variables }),
  })
  return answer.json()
}
const run = async () => {
  by('answer').textContent = '...'
  try {
    const variables = by('variables').value.trim()
    const started = new Date()
    const answer = await ask(by('query').value, variables === '' ? undefined : JSON.parse(variables))
    by('time').textContent = (new Date() - started) + ' ms'
    by('answer').textContent = JSON.stringify(answer, null, 2)
  } catch (error) {
    by('answer').textContent = String(error)
  }
}
by('run').addEventListener('click', run)
document.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run()
})
const typeOf = (type) =>
  type.kind === 'NON_NULL' ? typeOf(type.ofType) + '!'
  : type.kind === 'LIST' ? '[' + typeOf(type.ofType) + ']'
  : type.name
const t = '{ kind name ofType { kind name ofType { kind name ofType { kind name } } } }'
ask('{ __schema { types { name kind fields { name description args { name type ' + t + ' } type ' + t +
  ' } inputFields { name type ' + t + ' } enumValues { name } } } }').then(({ data }) => {
  const lines = []
  for (const type of data.__schema.types) {
    if (type.name.startsWith('__') || type.kind === 'SCALAR') continue
    lines.push(type.name)
    for (const field of type.fields || []) {
      const args = field.args.map((arg) => arg.name + ': ' + typeOf(arg.type)).join(', ')
      lines.push('  ' + field.name + (args && '(' + args + ')') + ': ' + typeOf(field.type))
    }
    for (const field of type.inputFields || []) lines.push('  ' + field.name + ': ' + typeOf(field.type))
    for (const value of type.enumValues || []) lines.push('  ' + value.name)
  }
  by('schema').textContent = lines.join('\\n')
})
`

const style = `
body { margin: 0; font: 14px/1.4 system-ui, sans-serif; display: grid; grid-template-columns: 1fr 1fr; height: 100vh; }
section { padding: 12px; display: flex; flex-direction: column; gap: 8px; min-height: 0; }
textarea, pre { font: 13px/1.4 ui-monospace, monospace; padding: 8px; margin: 0; }
textarea, pre { border: 1px solid #ccc; border-radius: 4px; }
#query { flex: 3; } #variables { flex: 1; } pre { flex: 1; overflow: auto; white-space: pre-wrap; }
`

const example = `{
  transactions(first: 5) {
    pageInfo { hasNextPage }
    edges {
      cursor
      node {
        id
        owner { address }
        data { size type }
        tags { name value }
        block { height timestamp }
      }
    }
  }
}`

/** The whole page. */
export const queryPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><title>GraphQL</title><meta name="viewport" content="width=device-width">
<style>${style}</style>
</head>
<body>
<section>
<label for="query">Query (Ctrl+Enter runs it)</label><textarea id="query" spellcheck="false">${example}</textarea>
<label for="variables">Variables (JSON)</label><textarea id="variables" spellcheck="false"></textarea>
<div><button id="run">Run</button> <span id="time"></span></div>
</section>
<section>
<label>Answer</label><pre id="answer"></pre>
<details><summary>Schema</summary><pre id="schema"></pre></details>
</section>
<script>${script}</script>
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
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
