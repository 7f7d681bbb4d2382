/** Words and endings of the client's commands, against the program's own services. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { completion, ownOptions } from '../../src/cli/completion.js'
import { oneLine } from '../../src/cli/one-line.js'
import { eventually } from '../eventually.js'
import { type Running, run, seeded, sluice } from '../flow/running.js'

const program = fileURLToPath(new URL('../../../bin/sluice.mjs', import.meta.url))
const wallet = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))

interface Place {
  readonly folder: string
  readonly words: readonly string[]
  readonly env: Record<string, string>
}

function placeOf(t: Test, { urls }: Running): Place {
  const folder = t.testdir()
  const key = join(folder, 'wallet.json')
  cpSync(wallet, key)
  chmodSync(key, 0o600)
  const { upload = '', payment = '', gateway = '' } = urls
  const words = ['--upload', upload, '--payment', payment, '--gateway', gateway, '--key', key]
  return { folder, words, env: { HOME: folder, DATA_PATH: join(folder, 'data') } }
}

let running: Running

t.teardown(() => running.kill())
t.before(async () => {
  running = await run(t, t.testdir({ data: {} }), {
    ...seeded,
    DEVNET_BLOCK_MS: '0',
    UPLOAD_FREE_ITEM_BYTES: '10000000',
  })
})

t.test('wrong words and paths end with one line and advice, never with a stack', async (t) => {
  const { folder, words, env } = placeOf(t, running)
  const id = running.examples.page as string
  const badKey = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  mkdirSync(join(folder, 'taken'))
  const cases: readonly (readonly [words: readonly string[], code: number, printed: RegExp])[] = [
    [['get', id, '--output', join(folder, 'none/x')], 1, /none\/x\.part: ENOENT\n {2}check the path/],
    [['get', id, '--output', join(folder, 'taken')], 1, /taken: EISDIR/],
    [['get', id, '--range', '20-10'], 2, /20-10 ends before it begins/],
    [['get', `-${'A'.repeat(42)}/x/y`], 3, /answered 404|is no manifest/],
    [['put', join(folder, 'none')], 3, /none: there is no such file/],
    [['share', 'A'.repeat(43), '5', '--seconds', 'abc'], 2, /--seconds abc is no number of seconds/],
    [['share', 'A'.repeat(43), '5', '--seconds', '0'], 2, /no number of seconds/],
    [['share', 'A'.repeat(43), '5'], 1, /buy credits by sluice top-up/],
    [['sync', folder, '--name', 'x'], 2, /Unknown option '--name'/],
    [['deploy', folder, '--watch'], 2, /Unknown option '--watch'/],
    [['deploy', folder, '--ttl', '5'], 2, /--ttl is of a --name/],
    [['balance', '--key', badKey('half.json', '{"kty":"RSA"}')], 2, /no private RSA key/],
    [['balance', '--key', badKey('word', 'no key')], 2, /the key is no Arweave JWK/],
  ]
  for (const [given, code, printed] of cases) {
    const ended = await sluice([given[0] as string, ...words, ...given.slice(1)], env)
    t.equal(ended.code, code, `${given.join(' ')}: ${ended.err}`)
    t.match(ended.err, printed)
    t.notMatch(ended.err, /\n\s+at /, 'no stack')
  }
})

t.test('a reader that leaves early ends the command without a word', async (t) => {
  const { words, env } = placeOf(t, running)
  const id = running.examples.large as string
  const line = '"$@" | head -c 3 | wc -c'
  const given = [process.execPath, program, 'get', id, ...words]
  const { stdout, stderr } = spawnSync('sh', ['-c', line, 'sh', ...given], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH ?? '', ...env },
  })
  t.equal(stdout.trim(), '3')
  t.notMatch(stderr, /EPIPE/)
})

t.test('a private drive says which of key and password is missing', async (t) => {
  const { folder, words, env } = placeOf(t, running)
  writeFileSync(join(folder, 'word'), 'secret\n', { mode: 0o600 })
  const made = await sluice(
    ['drive', 'create', 'p', '--private', '--password-file', join(folder, 'word'), ...words],
    env,
  )
  const id = made.out.trim()
  t.equal(made.code, 0, made.err)
  // Indexes hear of it some moments later.
  await eventually('the drive is listed', async () => {
    const listed = await sluice(['drive', 'ls', id, ...words], env)
    return listed.code !== 3 && listed
  })
  const without = await sluice(['drive', 'ls', id, ...words], env)
  t.match(without, { code: 2, err: /no password was given\n {2}give its password/ })
  const keyless = await sluice(['drive', 'ls', id, ...words.slice(0, -2)], env)
  t.match(keyless, { code: 2, err: /private\n {2}make a key by sluice key new, or give --key FILE/ })
})

t.test('control characters of names are written as in JSON', async (t) => {
  t.equal(oneLine('a\nb\x1b[2J\x7f\x85ü😀'), 'a\\nb\\u001b[2J\\u007f\\u0085ü😀')
  t.equal(oneLine('a\u202egnp\u2066.\u2028'), 'a\\u202egnp\\u2066.\\u2028')
})

t.test('a folder is watched: what is added, changed, removed, renamed, and what fails', async (t) => {
  const { folder, words, env } = placeOf(t, running)
  const site = join(folder, 'site')
  mkdirSync(join(site, 'sub'), { recursive: true })
  writeFileSync(join(site, 'a'), 'one')
  const child = spawn(process.execPath, [program, 'sync', site, '--watch', '--json', ...words], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [printed, failed]: [string[], string[]] = [[], []]
  child.stdout.on('data', (text: Buffer) => printed.push(text.toString()))
  child.stderr.on('data', (text: Buffer) => failed.push(text.toString()))
  const paths = (): string => {
    const last = printed.join('').trim().split('\n').at(-1) ?? ''
    if (last === '') return ''
    return (JSON.parse(last) as { files: { path: string }[] }).files.map(({ path }) => path).join(' ')
  }
  const sees = async (wanted: string): Promise<void> => {
    await eventually('the folder has these files', () => paths() === wanted)
    t.equal(paths(), wanted)
  }
  await sees('a')
  writeFileSync(join(site, 'b'), 'two')
  await sees('a b')
  renameSync(join(site, 'a'), join(site, 'sub/c'))
  await sees('b sub/c')
  mkdirSync(join(site, 'later/x'), { recursive: true })
  writeFileSync(join(site, 'later/x/d'), 'four')
  await sees('b later/x/d sub/c')
  for (const name of ['later', 'sub', 'b']) rmSync(join(site, name), { recursive: true })
  await eventually('the empty folder is named', () => failed.join('').includes('the folder has no files'))
  t.equal(child.exitCode, null, 'it goes on')
  writeFileSync(join(site, 'e'), 'five')
  await sees('e')
  child.kill('SIGINT')
  t.strictSame(await once(child, 'exit'), [0, null])
})

t.test('who uploads many small files one by one is told of bundles', async (t) => {
  const { folder, words, env } = placeOf(t, running)
  const site = join(folder, 'many')
  mkdirSync(site)
  for (let at = 0; at < 100; at++) writeFileSync(join(site, `${at}.txt`), `file ${at}`)
  const bundled = await sluice(['deploy', site, '--bundle', ...words], env)
  t.equal(bundled.code, 0, bundled.err)
  t.notMatch(bundled.err, /small files/)
  const again = await sluice(['sync', site, ...words], env)
  t.match(again.out, /0 of 100 files uploaded/)
  t.match(again.err, /100 small files: --bundle/)
})

t.test('completion scripts know every option of the client’s commands', async (t) => {
  for (const [command, options] of Object.entries(ownOptions)) {
    const { out } = await sluice([command, '--help'])
    const [own = ''] = out.split('\n  --network NAME')
    const documented = new Set([...own.matchAll(/--[a-z-]+/g)].map(([one]) => one))
    for (const common of ['--help', '--json', '--key', '--network', '--gateway', '--token'])
      documented.delete(common)
    t.strictSame([...documented].sort(), options.split(' ').sort(), command)
  }
  const script = await sluice(['completion', 'bash'])
  const meant = (words: string): string => {
    const line = `${script.out}
COMP_WORDS=(${words}); COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); _sluice; echo "\${COMPREPLY[*]}"`
    return spawnSync('bash', ['-c', line], { encoding: 'utf8' }).stdout.trim()
  }
  t.equal(meant('sluice dr'), 'drive')
  t.equal(meant('sluice drive r'), 'rename')
  t.equal(meant('sluice sync --w'), '--watch')
  t.equal(meant('sluice get --ra'), '--range')
  t.equal(meant('sluice get site'), '', 'names of files are the shell’s own')
  t.equal(await completion(['tcsh']), 2)
  const { out } = await sluice(['--help'])
  const known = (await sluice(['completion', 'fish'])).out
  for (const [, command] of out.matchAll(/^ {2}([a-z-]+) {2,}/gm))
    t.match(known, new RegExp(`[" ]${command}[" ]`), String(command))
})
