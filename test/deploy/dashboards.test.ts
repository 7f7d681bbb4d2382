/** What operators look at and are woken by: every query asks for a metric that there is, and the alerts do what they say. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { seriesNames } from '../routes/shown-metrics.js'

const deploy = fileURLToPath(new URL('../../../deploy/', import.meta.url))

/** Words of PromQL that are no functions, and what Prometheus itself makes of a scrape. */
const words = new Set(['and', 'or', 'unless', 'by', 'without', 'on', 'ignoring', 'bool', 'up'])

/** Metrics that a query of PromQL asks for. */
function metricsIn(query: string): string[] {
  const bare = query
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, ' ')
    .replace(/\[[^\]]*\]/g, ' ')
    .replace(/\b(by|without|on|ignoring)\s*\([^)]*\)/g, ' ')
  return [...bare.matchAll(/\b[a-z_][a-z0-9_]*\b(?!\s*\()/gi)]
    .map(([name]) => name)
    .filter((name) => !words.has(name))
}

/** Queries of the rules: what stands after `expr:`, on its line or indented below it. */
function rulesIn(text: string): string[] {
  return [...text.matchAll(/^( +)expr: (.*)\n((?:\1 +.*\n)*)/gm)].map(([, , first = '', more = '']) =>
    first === '>-' ? more : first,
  )
}

interface Dashboard {
  readonly panels: readonly { readonly id: number; readonly targets?: readonly { readonly expr: string }[] }[]
}

t.test('names of metrics are found in a query', async (t) => {
  t.same(metricsIn('sum by (a, le) (rate(b_total{c="d"}[5m])) / (e > 0) and time() - f > 3600'), [
    'b_total',
    'e',
    'f',
  ])
})

t.test('every query asks for a metric that there is', async (t) => {
  const known = seriesNames()
  const { panels } = JSON.parse(readFileSync(`${deploy}grafana/sluice.json`, 'utf8')) as Dashboard
  const shown = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  const rules = rulesIn(readFileSync(`${deploy}alerts.yml`, 'utf8'))
  t.ok(shown.length > 40)
  t.ok(rules.length > 10)
  for (const query of [...shown, ...rules]) {
    const unknown = metricsIn(query).filter((name) => !known.has(name))
    t.same(unknown, [], query)
  }
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length, 'no panel twice')
})

const promtool = spawnSync('promtool', ['--version']).error === undefined
t.test(
  'the alerts fire for a gateway in trouble, and not for one that is well',
  { skip: promtool ? false : 'promtool is not installed (Debian: prometheus)' },
  async (t) => {
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'alerts.test.yml'], {
      cwd: deploy,
      encoding: 'utf8',
    })
    t.equal(status, 0, stdout + stderr)
  },
)
