/** The files that containers are run by, as far as they can be judged without an engine. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { validate } from 'dockerfile-utils'
import t from 'tap'
import { listSettings } from '../../config/read.js'

const deploy = fileURLToPath(new URL('../../../deploy/', import.meta.url))
const read = (name: string): string => readFileSync(`${deploy}${name}`, 'utf8')

/** What each profile starts. */
const profiles: Readonly<Record<string, readonly string[]>> = {
  gateway: ['gateway'],
  services: ['services'],
  shared: ['postgres', 'redis', 'shared'],
  monitoring: ['grafana', 'prometheus'],
}

const hasCompose = spawnSync('docker-compose', ['--version']).error === undefined
t.test(
  'Compose takes the file, and each profile starts what it says',
  { skip: hasCompose ? false : 'docker-compose is not installed (Debian: docker-compose)' },
  async (t) => {
    const chosen = Object.keys(profiles).flatMap((profile) => ['--profile', profile])
    const words = ['-f', 'compose.yaml', ...chosen, 'config']
    const run = spawnSync('docker-compose', words, { cwd: deploy, encoding: 'utf8' })
    t.equal(run.status, 0, run.stderr)
    const found: Record<string, string[]> = {}
    for (const [, service = '', body = ''] of run.stdout.matchAll(/^ {2}(\w+):\n((?: {4}.*\n)+)/gm)) {
      const [, profile = ''] = /^ {4}profiles:\n {4}- (\w+)/m.exec(body) ?? []
      found[profile] = [...(found[profile] ?? []), service]
    }
    t.strictSame(found, profiles)
  },
)

t.test(
  'Compose takes the file of the cluster, and wants a key for it',
  { skip: hasCompose ? false : 'docker-compose is not installed (Debian: docker-compose)' },
  async (t) => {
    const composed = (key: string) =>
      spawnSync('docker-compose', ['-f', 'cluster/compose.yaml', 'config'], {
        cwd: deploy,
        encoding: 'utf8',
        env: { PATH: process.env.PATH ?? '', ADMIN_API_KEY: key },
      })
    const run = composed('a-key-of-tests')
    t.equal(run.status, 0, run.stderr)
    const nodes = [...run.stdout.matchAll(/CLUSTER_NODE: (\S+)/g)].map(([, name]) => name)
    t.strictSame(nodes, ['gateway-1', 'gateway-2', 'gateway-3'])
    const keyVolumes = [...run.stdout.matchAll(/- (\S+):\/data\/keys:/g)].map(([, volume]) => volume)
    t.strictSame(
      keyVolumes,
      ['keys', 'keys', 'keys'],
      'a receipt of any of them is one of the wallet that all name',
    )
    t.match(read('Dockerfile'), /mkdir -p \/data\/keys && chown -R node:node/, 'they may write there')
    for (const name of nodes) t.match(read('cluster/haproxy.cfg'), `server ${name} ${name}:3000`)
    t.not(composed('').status, 0, 'no key that everybody knows')
  },
)

t.test('Compose reads no file that may be absent, which only newer releases can', async (t) => {
  t.notMatch(read('compose.yaml'), /required: *false|env_file: *\[? *\{/)
})

t.test('every setting that the containers are given exists', async (t) => {
  const known = new Set(listSettings().map(({ env }) => env))
  const foreign = /^(POSTGRES_|GF_)/
  const files = read('compose.yaml') + read('cluster/compose.yaml')
  const composed = [...files.matchAll(/\b([A-Z][A-Z0-9_]{5,}): /g)].map(([, name = '']) => name)
  const environments = read('sluice.env') + read('cluster/cluster.env')
  const listed = [...environments.matchAll(/^#?([A-Z][A-Z0-9_]+)=/gm)].map(([, name = '']) => name)
  t.ok(composed.includes('PAYMENT_DATABASE_URL'))
  t.ok(composed.includes('CLUSTER_DATABASE_URL') && listed.includes('S3_BUCKET'))
  t.strictSame(
    [...composed, ...listed].filter((name) => !foreign.test(name) && !known.has(name)),
    [],
  )
})

t.test('the Dockerfile has no fault that a linter knows', async (t) => {
  t.strictSame(
    validate(read('Dockerfile')).map(({ message, range }) => `${range.start.line + 1}: ${message}`),
    [],
  )
  t.not(validate('FROM a\nADD').length, 0, 'the linter sees faults')
})

const hasPrometheus = spawnSync('promtool', ['--version']).error === undefined
t.test(
  'Prometheus takes its configuration',
  { skip: hasPrometheus ? false : 'promtool is not installed (Debian: prometheus)' },
  async (t) => {
    for (const file of ['prometheus.yml', 'cluster/prometheus.yml']) {
      const run = spawnSync('promtool', ['check', 'config', file], { cwd: deploy, encoding: 'utf8' })
      t.equal(run.status, 0, run.stdout + run.stderr)
    }
  },
)
