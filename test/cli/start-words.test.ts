import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { ranMs } from '../../native/schedule/schedule.js'
import { pause } from '../../src/actor/clock.js'
import { eventually } from '../eventually.js'
import { run, sluice } from '../flow/running.js'
import { scratch } from '../scratch.js'

/** The addon is there where anything can be asked of it. */
const noSchedule = ranMs() === undefined && 'native/schedule was not built'
const root = fileURLToPath(new URL('../../../', import.meta.url))

t.test('help and version have short forms', async (t) => {
  const [long, short] = [await sluice(['--help']), await sluice(['-h'])]
  t.equal(short.code, 0)
  t.equal(short.out, long.out)
  t.equal((await sluice(['-v'])).out, (await sluice(['--version'])).out)
  t.equal((await sluice(['verify', '-h'])).out, (await sluice(['verify', '--help'])).out)
})

t.test('exit codes tell kinds of failures apart', async (t) => {
  const id = 'A'.repeat(43)
  t.equal((await sluice(['nothing'])).code, 2, 'a command that does not exist')
  t.equal((await sluice(['verify', 'short'])).code, 2, 'no id')
  t.equal((await sluice(['start', '--nothing'])).code, 2, 'an option that does not exist')
  const away = ['--gateway', 'http://127.0.0.1:9', '--node', 'http://127.0.0.1:9']
  t.equal((await sluice(['verify', id, ...away])).code, 5, 'nobody listens there')
  const running = await run(t, t.testdir(), { SERVICES: 'gateway' })
  const here = ['--gateway', running.urls.gateway ?? '', '--node', running.urls.devnet ?? '']
  t.equal((await sluice(['verify', id, ...here])).code, 3, 'no such content')
  t.equal(await running.stop(), 0)
})

t.test('the command says what is missing where nothing was built', async (t) => {
  const empty = t.testdir()
  mkdirSync(join(empty, 'bin'))
  cpSync(join(root, 'bin/sluice.mjs'), join(empty, 'bin/sluice.mjs'))
  const ended = spawnSync(process.execPath, [join(empty, 'bin/sluice.mjs'), 'start'], { encoding: 'utf8' })
  t.equal(ended.status, 1)
  t.match(ended.stderr, /not built yet. Run: npm ci && npm run build/)
})

t.test('a start that is told to stop leaves within seconds, with code 0, at whatever moment', async (t) => {
  for (const delayMs of [0, 20, 100, 250, 400, 600, 900]) {
    const dataPath = scratch('start')
    const child = spawn(process.execPath, [join(root, 'bin/sluice.mjs'), 'start'], {
      env: { PATH: process.env.PATH ?? '', PORT: '0', DEVNET_PORT: '0', DATA_PATH: dataPath },
      stdio: 'ignore',
    })
    const exited = once(child, 'exit')
    t.teardown(() => child.kill('SIGKILL'))
    // The first folder is there before the threads are.
    await eventually('the start has made keys', () => existsSync(join(dataPath, 'keys')))
    await pause(delayMs)
    child.kill('SIGTERM')
    t.strictSame(await exited, [0, null], `its code, and no signal, after ${delayMs} ms`)
  }
})

t.test('a process leaves with its code while its threads load', { skip: noSchedule }, async (t) => {
  const [schedule, lmdb] = [new URL('../../native/schedule/schedule.js', import.meta.url).href, 'lmdb']
  const code = `
    import { Worker } from 'node:worker_threads'
    import { leaveAtOnce } from ${JSON.stringify(schedule)}
    for (let i = 0; i < 4; i += 1) new Worker('import(${JSON.stringify(lmdb)})', { eval: true })
    process.on('exit', () => process.stdout.write('run at the end'))
    setTimeout(() => leaveAtOnce(7), 50)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { cwd: root })
  const out: Buffer[] = []
  child.stdout.on('data', (bytes: Buffer) => out.push(bytes))
  t.strictSame(await once(child, 'close'), [7, null])
  t.equal(Buffer.concat(out).toString(), '', 'nothing is run')
})

const skip =
  spawnSync('script', ['--version']).error !== undefined && 'script (of util-linux) is not installed'

t.test(
  'on a terminal the log goes to a file and the list of what to open to the screen',
  { skip },
  async (t) => {
    const dataPath = t.testdir()
    const screen = join(dataPath, 'screen')
    const command = `${process.execPath} ${join(root, 'bin/sluice.mjs')} start`
    const child = spawn('script', ['-qefc', command, screen], {
      env: {
        PATH: process.env.PATH ?? '',
        TERM: 'xterm',
        PORT: '0',
        DEVNET_PORT: '0',
        DATA_PATH: dataPath,
        // Making a key of its own takes the program seconds.
        UPLOAD_WALLET_FILE: join(root, 'test/fixture/rsa-4096.jwk.json'),
      },
      stdio: 'ignore',
    })
    const exited = once(child, 'exit')
    t.teardown(() => child.kill('SIGKILL'))
    const shown = (): string => (existsSync(screen) ? readFileSync(screen, 'utf8') : '')
    await eventually('the start is complete', () => shown().includes('Ctrl+C ends the program'))
    const log = join(dataPath, 'log', 'sluice.log')
    t.match(shown(), /site {5}.*http:\/\/site\.localhost:\d+\//)
    t.match(shown(), /graphql {2}.*http:\/\/127\.0\.0\.1:\d+\/graphql/)
    t.match(shown(), /the key is in \S*keys\/admin\.key/)
    t.notOk(shown().includes('"level":'), 'no log lines on the screen')
    t.match(readFileSync(log, 'utf8'), /"thread":"main"/)
    t.equal(statSync(log).mode & 0o777, 0o600)
    child.kill('SIGTERM')
    await exited
  },
)
