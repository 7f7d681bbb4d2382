import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { getPriority } from 'node:os'
import t, { type Test } from 'tap'
import { missingAddons } from '../../native/addon.js'
import { pause } from '../../src/actor/clock.js'
import { ranks } from '../../src/actor/priority.js'
import { eventually } from '../eventually.js'
import { type Running, run, seeded, sluice, twoEdges } from './running.js'

t.test(
  'one command brings up everything, each example is served from the cache, and a second start knows them all',
  async (t) => {
    const dataPath = t.testdir()
    const running = await run(t, dataPath, { ...seeded, ...twoEdges })
    t.strictSame(Object.keys(running.examples).sort(), ['image', 'item', 'large', 'nested', 'page', 'site'])
    const missing = running.log.flatMap(({ addon }) => (addon === undefined ? [] : [addon]))
    t.strictSame(
      missing,
      missingAddons().map(({ addon }) => addon),
      'the program finds the addons that are here',
    )
    for (const [name, id] of Object.entries(running.examples)) {
      const answer = await fetch(`${running.urls.gateway}/${id}`)
      const bytes = Buffer.from(await answer.arrayBuffer())
      t.equal(answer.status, 200, name)
      const header = (key: string): string | null => answer.headers.get(key)
      if (name !== 'site') t.equal(header('x-gateway-data-id'), id, `${name}: its own id`)
      t.equal(header('x-cache'), 'HIT', `${name}: from the cache`)
      t.equal(header('x-gateway-verified'), 'true', `${name}: proven`)
      t.match(header('x-gateway-stable'), /^(true|false)$/)
      t.match(header('x-gateway-trusted'), /^(true|false)$/)
      const digest = createHash('sha256').update(bytes).digest()
      t.equal(
        header('content-digest'),
        `sha-256=:${digest.toString('base64')}:`,
        `${name}: the digest is that of the bytes`,
      )
      t.equal(header('x-gateway-digest'), digest.toString('base64url'))
      t.equal(header('etag'), `"${digest.toString('base64url')}"`)
      t.match(
        header('signature-input'),
        /^sig1=\("@status" .*"@method";req "@path";req\);created=\d+;keyid="ed25519:/,
      )
      t.match(header('signature'), /^sig1=:[A-Za-z0-9+/]{86}==:$/)
      t.match(header('x-chain-owner-address'), /^[\w-]{43}$/)
      t.equal(header('access-control-allow-origin'), '*')
      if (name === 'large') t.equal(bytes.length, 4 * 1024 * 1024)
      if (name === 'item' || name === 'nested')
        t.match(header('x-gateway-root-transaction-id'), /^[\w-]{43}$/)
    }
    const bare = await fetch(`${running.urls.gateway}/${running.examples.site}`, { redirect: 'manual' })
    t.equal(bare.status, 301, 'a manifest sends to the slash form')
    await givesWay(t, running)
    await running.kill()

    const second = await run(t, dataPath, { ...seeded, ...twoEdges })
    t.strictSame(second.examples, running.examples, 'the same ids')
    const answer = await fetch(`${second.urls.gateway}/${second.examples.image}`)
    t.equal(answer.headers.get('x-cache'), 'HIT', 'nothing is fetched')
    await answer.arrayBuffer()
    t.equal(await second.stop(), 0, 'SIGTERM drains and leaves with code 0')
    await eventually('the second program has stopped', () => second.log.some(({ msg }) => msg === 'stopped'))
    t.strictSame(
      second.log.filter((line) => Number(line.level) >= 50),
      [],
      'nothing was left behind',
    )
  },
)

/** Threads of a running program that nobody waits for give way, and none has a policy under which it may starve with a lock. */
async function givesWay(t: Test, { process: child, log }: Running): Promise<void> {
  const pid = child.pid ?? 0
  const refused = log.some(({ msg }) => String(msg).includes('could not be lowered'))
  if (getPriority() !== 0 || refused) {
    t.comment('nice already, or not allowed: nothing can be seen')
    return
  }
  const threads = (): number[] => readdirSync(`/proc/${pid}/task`).map(Number)
  const nice = (): number => threads().filter((one) => getPriority(one) === ranks.background).length
  t.ok(
    await eventually('the ranks of the background', () => nice() >= 6),
    'the follower, the keeper and the engine',
  )
  t.same([...new Set(threads().map((one) => policyOf(pid, one)))], [0], 'SCHED_OTHER')
  t.equal(getPriority(pid), 0, 'not the main thread')
}

/** The scheduling policy of a thread, as sched(7) numbers them: field 41 of proc_pid_stat(5). */
function policyOf(pid: number, thread: number): number {
  const line = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')
  return Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[38])
}

t.test('wrong settings stop the start, all listed at once', async (t) => {
  const { code, err } = await sluice(['start'], {
    PORT: 'many',
    HTTPSIG_ENABLD: 'true',
    RATE_LIMITER_TYPE: 'paper',
    RATE_LIMITER_COLOUR: 'red',
  })
  t.equal(code, 2)
  t.match(err, /PORT: must be/)
  t.match(err, /HTTPSIG_ENABLD: no such setting; did you mean HTTPSIG_ENABLED/)
  t.match(err, /RATE_LIMITER_TYPE: must be one of/)
  t.match(err, /RATE_LIMITER_COLOUR: no such setting/)
})

t.test('every command explains itself', async (t) => {
  for (const words of [
    ['--help'],
    ['start', '--help'],
    ['verify', '--help'],
    ['devnet', '--help'],
    ['settings', '--help'],
    ['names', '--help'],
    ['moderation', '--help'],
    ['bands', '--help'],
    ['import', '--help'],
    ['index', '--help'],
  ]) {
    const { code, out } = await sluice(words)
    t.equal(code, 0, words.join(' '))
    t.match(out, /Usage: sluice/)
    t.notMatch(out, '\x1b', 'no colours where no terminal is')
  }
  t.equal((await sluice(['fly'])).code, 2)
  t.match((await sluice(['settings'])).out, /PORT = 3000/)
  const found = JSON.parse((await sluice(['settings', 'drain', '--json'])).out) as unknown
  t.match(found, [{ name: 'SHUTDOWN_DRAIN_MS', default: '10000', meaning: String, secret: false }])
  t.match(await sluice(['settings', 'nosuchword']), { code: 3, out: '', err: /No setting has "nosuchword"/ })
})

async function plainWords(t: Test, running: Running): Promise<void> {
  const { gateway } = running.urls
  const info = await fetch(`${gateway}/gateway/info`)
  t.equal(info.headers.get('signature'), null)
  t.match(await info.json(), {
    httpsig: { algorithm: 'ed25519', keyId: /^ed25519:[\w-]{43}$/ },
    release: /^sluice/,
  })
  // On a busy machine the node answers a moment later.
  const health = await eventually('the gateway is healthy', async () => {
    const state = (await (await fetch(`${gateway}/gateway/healthcheck`)).json()) as { status: string }
    return state.status === 'ok' ? state : undefined
  })
  t.match(health, { status: 'ok', uptime: Number })
  const metrics = await (await fetch(`${gateway}/gateway/__gateway_metrics`)).text()
  t.match(metrics, /^http_requests_total\{route="info",status="2xx",release="[^"]+"\} [1-9]/m)
  t.match(metrics, /^process_resident_memory_bytes\{release="[^"]+"\} \d+$/m)
  t.equal((await fetch(`${gateway}/${'A'.repeat(43)}`)).status, 404, 'an id nobody knows')
  t.equal((await fetch(`${gateway}/${'A'.repeat(42)}B`)).status, 400, 'an id that is none')
}

async function longHeads(t: Test, running: Running): Promise<void> {
  const { hostname, port } = new URL(running.urls.gateway ?? '')
  const answered = async (headBytes: number): Promise<string> => {
    const socket = connect(Number(port), hostname)
    // What is refused is closed while we still write.
    socket.on('error', () => socket.destroy())
    await once(socket, 'connect')
    const head = `GET /gateway/healthcheck HTTP/1.1\r\nHost: x\r\nX-Filler: ${'f'.repeat(headBytes)}`
    for (let at = 0; at < head.length && !socket.destroyed; at += 3000) {
      socket.write(head.slice(at, at + 3000))
      await pause(5)
    }
    socket.end('\r\n\r\n')
    let text = ''
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1')
    })
    if (!socket.closed) await once(socket, 'close')
    return text.split('\r\n')[0] ?? ''
  }
  t.match(await answered(12_000), 'HTTP/1.1 200 OK')
  t.notMatch(await answered(40_000), '200')
}

async function onlyOne(t: Test, running: Running, dataPath: string): Promise<void> {
  const { port } = new URL(running.urls.gateway ?? '')
  const sameFolder = await sluice(['start'], { DATA_PATH: dataPath, PORT: '0', DEVNET_PORT: '0' })
  t.equal(sameFolder.code, 1)
  t.match(sameFolder.err, /another sluice is running/)
  const other = { DATA_PATH: `${dataPath}-2`, PORT: port, DEVNET_PORT: '0', DEVNET_SEED: 'false' }
  const samePort = await sluice(['start'], other)
  t.equal(samePort.code, 1)
  t.match(samePort.err, `port ${port} is taken`)
}

async function stops(t: Test, running: Running): Promise<void> {
  const { gateway, upload, payment } = running.urls
  const healthPaths = [
    `${gateway}/gateway/healthcheck`,
    `${upload}/health`,
    `${upload}/healthcheck`,
    `${payment}/health`,
  ]
  const statuses = async (paths: readonly string[]): Promise<number[]> =>
    Promise.all(paths.map(async (path) => (await fetch(path)).status))
  t.ok(
    await eventually('every service is healthy', async () =>
      (await statuses(healthPaths)).every((status) => status === 200),
    ),
  )
  running.process.kill('SIGTERM')
  t.ok(
    await eventually('every service states that it ends', async () =>
      (await statuses(healthPaths)).every((status) => status === 503),
    ),
  )
  t.match(await (await fetch(healthPaths[0] ?? '')).json(), { reasons: [/stopping/] })
  const others = [`${gateway}/gateway/livez`, `${gateway}/gateway/info`, `${upload}/livez`, `${payment}/info`]
  t.strictSame(await statuses(others), [200, 200, 200, 200], 'all else is served')
  t.equal(await running.stop(), 0, 'in much less time than SHUTDOWN_NOTICE_MS')
}

t.test('a program that runs', async (t) => {
  const dataPath = t.testdir()
  const running = await run(t, dataPath, {
    DEVNET_SEED: 'false',
    SHUTDOWN_NOTICE_MS: '600000',
    SHUTDOWN_DRAIN_MS: '500',
  })
  await t.test('its info and health are JSON and unsigned', (t) => plainWords(t, running))
  await t.test('a long head may come in packets; one too long is refused', (t) => longHeads(t, running))
  await t.test('it shares neither folder nor port with another', (t) => onlyOne(t, running, dataPath))
  await t.test('told to stop it says so first and serves on; a second signal ends that', (t) =>
    stops(t, running),
  )
})
