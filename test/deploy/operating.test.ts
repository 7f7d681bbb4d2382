/** What operators read at night: every alert is answered, and what the page and the program name is there. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { foreign } from '../../config/foreign.js'
import { listSettings } from '../../config/read.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const page = readFileSync(`${root}deploy/OPERATING.md`, 'utf8')
const settings = new Set([...listSettings().map(({ env }) => env), ...foreign.keys()])
/** Names of others: folders of the user, words of queries, a right of the system. */
const othersNames = /^(XDG|HEIGHT|CAP|SLC|INDEX_UNAVAILABLE|QUERY_TOO)_?/
const settingShape = /(?<![\w.*-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w*-])/g

/** Texts of all sources below these folders. */
function sources(...folders: readonly string[]): readonly string[] {
  return folders.flatMap((folder) =>
    readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|cc|h)$/.test(name) && !name.includes('node_modules'))
      .map((name) => readFileSync(`${root}${folder}/${name}`, 'utf8')),
  )
}

function unknownSettings(text: string): readonly string[] {
  const named = [...text.matchAll(settingShape)].map(([name]) => name)
  return named.filter((name) => !settings.has(name) && !othersNames.test(name))
}

t.test('the page answers every alert in a row of its own, in the order of the rules', async (t) => {
  const rules = readFileSync(`${root}deploy/alerts.yml`, 'utf8')
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
  const rows = [...page.matchAll(/^\| `(Sluice\w+)` +\|[^|\n]*\w[^|\n]*\|[^|\n]*\w[^|\n]*\|$/gm)]
  t.ok(alerts.length > 30)
  t.same(
    rows.map(([, name]) => name),
    alerts,
  )
})

t.test('every setting that the page or a text of the program names is one', async (t) => {
  const spans = [...page.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span)
  t.same(spans.flatMap(unknownSettings), [])
  const sentence = /(['`])((?:(?!\1)[^\\\n]|\\.)*? (?:(?!\1)[^\\\n]|\\.)*?)\1/g
  const texts = sources('src', 'config', 'workers').flatMap((text) => [...text.matchAll(sentence)])
  t.ok(texts.length > 2000)
  t.same(
    texts.flatMap(([, , text = '']) => unknownSettings(text)),
    [],
  )
})

t.test('every line of the log that the page quotes is one', async (t) => {
  const quoted = [...page.matchAll(/\blog(?:| line)(?:| has| says):?\s+`([^`\n]+)`/g)].map(
    ([, text = '']) => text,
  )
  const all = sources('src', 'workers', 'native').join('\n')
  t.ok(quoted.length > 10)
  // A word that stands alone is a code.
  t.same(
    quoted.filter((text) => text.includes(' ') && !all.includes(text)),
    [],
  )
})
