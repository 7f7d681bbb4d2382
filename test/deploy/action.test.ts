/** The action of workflows: its step as a runner starts it, against the program's own services. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { run } from '../flow/running.js'

/** Everything here takes minutes on a busy machine. */
t.setTimeout(600_000)

const action = fileURLToPath(new URL('../../../deploy/action/', import.meta.url))
const program = fileURLToPath(new URL('../../../bin/sluice.mjs', import.meta.url))

t.test('every input reaches the step, and every output comes from it', async (t) => {
  const text = readFileSync(join(action, 'action.yml'), 'utf8')
  const section = (name: string): string =>
    new RegExp(`^${name}:\\n((?:  .*\\n)+)`, 'm').exec(text)?.[1] ?? ''
  const names = (part: string): string[] => [...part.matchAll(/^ {2}([\w-]+):/gm)].map(([, one = '']) => one)
  const script = readFileSync(join(action, 'deploy.sh'), 'utf8')
  for (const input of names(section('inputs'))) t.ok(text.includes(`\${{ inputs.${input} }}`), input)
  for (const [, variable = ''] of text.matchAll(/^ {8}(DEPLOY_\w+):/gm))
    t.ok(script.includes(variable), variable)
  for (const output of names(section('outputs'))) t.ok(script.includes(`${output}=$`), output)
  t.equal(spawnSync('bash', ['-n', join(action, 'deploy.sh')]).status, 0)
})

t.test('the step uploads a folder, writes outputs, and shows no key', async (t) => {
  const folder = t.testdir({ site: { 'index.html': '<p>hello', 'a b.css': 'p{}' }, home: {} })
  const { urls } = await run(t, join(folder, 'data'), { DEVNET_SEED: 'false' })
  const { upload = '', payment = '', gateway = '' } = urls
  const key = '0a'.repeat(32)
  mkdirSync(join(folder, 'registry'))
  const outputs = async (site: string): Promise<{ out: string; values: Record<string, string> }> => {
    const file = join(folder, 'outputs')
    writeFileSync(file, '')
    const environment = {
      PATH: process.env.PATH ?? '',
      HOME: join(folder, 'home'),
      DATA_PATH: join(folder, 'registry'),
      GITHUB_OUTPUT: file,
      WALLET_KEY: key,
      SLUICE: `${process.execPath} ${program}`,
      DEPLOY_FOLDER: site,
      DEPLOY_NETWORK: 'local',
      DEPLOY_UPLOAD_URL: upload,
      DEPLOY_PAYMENT_URL: payment,
      DEPLOY_GATEWAY_URL: gateway,
      DEPLOY_INDEX: 'index.html',
    }
    const done = await promisify(execFile)('bash', [join(action, 'deploy.sh')], { env: environment })
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    const values = Object.fromEntries(
      lines.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
    )
    return { out: done.stdout + done.stderr, values }
  }
  const { out, values } = await outputs(join(folder, 'site'))
  t.match(values, { id: /^[\w-]{43}$/, uploaded: '2' })
  t.notOk(out.includes(key))
  t.equal(await (await fetch(`${values.link}a%20b.css`)).text(), 'p{}')
  t.match((await outputs(join(folder, 'site'))).values, { id: values.id, uploaded: '0' })
  await t.rejects(outputs(join(folder, 'none')), 'a folder that is not there fails the step')
})
