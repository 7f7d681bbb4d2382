/** The action of workflows: its steps as a runner starts them, against the program's own services. */
import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { installPacked } from '../client/packed.js'
import { run } from '../flow/running.js'

const action = fileURLToPath(new URL('../../../deploy/action/', import.meta.url))

t.test(
  'every input reaches a step, every output comes from one, and the key reaches the second one alone',
  async (t) => {
    const text = readFileSync(join(action, 'action.yml'), 'utf8')
    const section = (name: string): string =>
      new RegExp(`^${name}:\\n((?:  .*\\n)+)`, 'm').exec(text)?.[1] ?? ''
    const names = (part: string): string[] =>
      [...part.matchAll(/^ {2}([\w-]+):/gm)].map(([, one = '']) => one)
    const script = ['fetch.sh', 'deploy.sh']
      .map((name) => readFileSync(join(action, name), 'utf8'))
      .join('\n')
    for (const input of names(section('inputs'))) t.ok(text.includes(`\${{ inputs.${input} }}`), input)
    for (const [, variable = ''] of text.matchAll(/^ {8}((?:DEPLOY|PACKAGE)_\w+):/gm))
      t.ok(script.includes(variable), variable)
    for (const output of names(section('outputs'))) t.ok(script.includes(`${output}=$`), output)
    for (const name of ['fetch.sh', 'deploy.sh'])
      t.equal(spawnSync('bash', ['-n', join(action, name)]).status, 0)
    const [, first = '', second = ''] = section('runs').split(/^ {4}- id: /m)
    t.match(first, /^fetch\n/)
    t.notMatch(first, /inputs\.key/)
    t.match(second, /WALLET_KEY: \$\{\{ inputs\.key \}\}/)
    t.notMatch(script, /\bnpx\b/, 'nothing runs that was not checked')
  },
)

t.test('a name that could not be set fails the step, and what was uploaded is told', async (t) => {
  const folder = t.testdir({
    'client.mjs': `
      process.stdout.write(JSON.stringify({ id: 'ID', link: 'LINK', uploadedFiles: 1, totalFiles: 2 }))
      process.exitCode = Number(process.env.CODE)`,
  })
  const environment = { SLUICE_CLIENT: join(folder, 'client.mjs'), DEPLOY_FOLDER: '.' }
  const outputOf = async (CODE: string): Promise<string> => {
    await t.rejects(step(folder, 'deploy.sh', { ...environment, CODE }), { code: Number(CODE) })
    return readFileSync(join(folder, 'outputs'), 'utf8')
  }
  t.equal(await outputOf('6'), 'id=ID\nlink=LINK\nuploaded=1\n')
  t.equal(await outputOf('1'), '', 'of any other failure nothing is told')
})

/** Runs a step of the action. Resolves with what it printed and its outputs; rejects where it fails. */
async function step(
  folder: string,
  name: string,
  environment: Record<string, string>,
): Promise<{ out: string; values: Record<string, string> }> {
  const file = join(folder, 'outputs')
  writeFileSync(file, '')
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: join(folder, 'home'),
    RUNNER_TEMP: folder,
    GITHUB_OUTPUT: file,
    ...environment,
  }
  const done = await promisify(execFile)('bash', [join(action, name)], { env })
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  const values = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]))
  return { out: done.stdout + done.stderr, values }
}

t.test(
  'the steps run the package that was pinned and no other, upload a folder, and show no key',
  async (t) => {
    const folder = t.testdir({ site: { 'index.html': '<p>hello', 'a b.css': 'p{}' }, home: {}, client: {} })
    const { tarball } = installPacked(join(folder, 'client'))
    const integrityOf = (): string =>
      `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
    const pinned = { PACKAGE_TARBALL: tarball, PACKAGE_INTEGRITY: integrityOf() }
    const fetched = await step(folder, 'fetch.sh', pinned)
    t.match(fetched.values.program, /sluice-client\.js$/)
    await t.rejects(step(folder, 'fetch.sh', { PACKAGE_TARBALL: tarball }), 'without its integrity')
    await t.rejects(step(folder, 'fetch.sh', { PACKAGE_VERSION: 'latest', PACKAGE_INTEGRITY: integrityOf() }))
    appendFileSync(tarball, 'x')
    const other = await step(folder, 'fetch.sh', pinned).then(
      ({ out }) => `taken: ${out}`,
      (error: { readonly stdout?: string }) => error.stdout,
    )
    t.match(other, /^::error::the package is another one than was pinned/)

    const { urls } = await run(t, join(folder, 'data'), { DEVNET_SEED: 'false' })
    const { upload = '', payment = '', gateway = '' } = urls
    const key = '0a'.repeat(32)
    mkdirSync(join(folder, 'registry'))
    const deploying = (site: string): ReturnType<typeof step> =>
      step(folder, 'deploy.sh', {
        DATA_PATH: join(folder, 'registry'),
        WALLET_KEY: key,
        SLUICE_CLIENT: fetched.values.program ?? '',
        DEPLOY_FOLDER: site,
        DEPLOY_NETWORK: 'local',
        DEPLOY_UPLOAD_URL: upload,
        DEPLOY_PAYMENT_URL: payment,
        DEPLOY_GATEWAY_URL: gateway,
        DEPLOY_INDEX: 'index.html',
      })
    const { out, values } = await deploying(join(folder, 'site'))
    t.match(values, { id: /^[\w-]{43}$/, uploaded: '2' })
    t.notOk(out.includes(key))
    t.equal(await (await fetch(`${values.link}a%20b.css`)).text(), 'p{}')
    t.match((await deploying(join(folder, 'site'))).values, { id: values.id, uploaded: '0' })
    await t.rejects(deploying(join(folder, 'none')), 'a folder that is not there fails the step')
  },
)
