/** A running program reads its settings again: what is used at once, what waits, what is refused; and nothing open is dropped. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { program, run, sluice, twoEdges } from './running.js'
import { upstream } from './upstream.js'

const small = { id: `${'S'.repeat(42)}A`, bytes: Buffer.alloc(9 * 1024, 'small') }
/** More than the buffers of a socket take. */
const large = { id: `${'L'.repeat(42)}A`, bytes: Buffer.alloc(20 * 1024 * 1024, 'large') }

/** One connection that is kept. */
class Line {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly sockets = new Set<Socket>()

  constructor(private readonly base: string) {}

  async get(path: string, headers: Record<string, string> = {}): Promise<number> {
    const sent = request(`${this.base}${path}`, { agent: this.#agent, headers })
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    this.sockets.add(answer.socket)
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode ?? 0
  }

  close(): void {
    this.#agent.destroy()
  }
}

t.test('settings are read again while connections and a download stay open', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'settings')
  const dataPath = join(folder, 'data')
  const trusted = await upstream(t, (id, _request, response) => {
    const found = [small, large].find((one) => one.id === id)
    if (found === undefined) response.writeHead(404).end()
    else response.writeHead(200, { 'content-length': found.bytes.length }).end(found.bytes)
  })
  const lines: Record<string, string> = {
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: '30',
    RATE_LIMITER_IP_REFILL_PER_SEC: '0',
    RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST: '198.51.100.0/24',
    ADMIN_API_KEY: 'the-first-key',
  }
  const write = (more: Record<string, string>): void => {
    Object.assign(lines, more)
    writeFileSync(
      file,
      Object.entries(lines)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    )
  }
  write({})
  const environment = {
    ...twoEdges,
    SETTINGS_FILE: file,
    TRUSTED_GATEWAYS_URLS: JSON.stringify({ [trusted.url]: 1 }),
  }
  const { urls, process: child, log, stop } = await run(t, dataPath, environment)
  const { gateway = '', upload = '', payment = '' } = urls
  const reload = async (more: Record<string, string>) => {
    write(more)
    return sluice(['reload'], { DATA_PATH: dataPath })
  }
  const line = new Line(gateway)
  t.teardown(() => line.close())
  const from = (address: string): Promise<number> =>
    line.get(`/raw/${small.id}`, { 'x-forwarded-for': address })
  const balanceOf = async (address: string): Promise<number | undefined> => {
    const answer = await fetch(`${gateway}/gateway/rate-limit/ip/${address}`)
    return answer.status === 404 ? undefined : ((await answer.json()) as { tokens: number }).tokens
  }

  // A download that is not read, begun by a client that is not limited.
  const download = connect(Number(new URL(gateway).port), '127.0.0.1')
  download.write(
    `GET /raw/${large.id} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n`,
  )
  await once(download, 'readable')

  t.same([await from('203.0.113.1'), await from('203.0.113.1'), await from('203.0.113.1')], [200, 200, 200])
  for (let turn = 0; turn < 5; turn += 1)
    t.equal(await from('203.0.113.1'), 429, 'three of 9 KiB are 27 of 30 tokens')
  t.match(await reload({ RATE_LIMITER_IP_TOKENS_PER_BUCKET: '70' }), {
    code: 0,
    out: 'used now: RATE_LIMITER_IP_TOKENS_PER_BUCKET\n',
  })
  const statuses = []
  for (let turn = 0; turn < 5; turn += 1) statuses.push(await from('203.0.113.1'))
  t.same(statuses, [200, 200, 200, 200, 429], 'four more fit into 70, also in answers of the response cache')
  const info = (await (await fetch(`${gateway}/gateway/info`)).json()) as {
    rateLimiter: { dataEgress: { buckets: { ip: { capacity: number } } } }
  }
  t.equal(info.rateLimiter.dataEgress.buckets.ip.capacity, 70, 'the info answer says so')

  t.same([await from('198.51.100.9'), await balanceOf('198.51.100.9')], [200, undefined], 'not limited')
  t.match(await reload({ RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST: '203.0.113.0/24' }), { code: 0 })
  t.same([await from('198.51.100.9'), await balanceOf('198.51.100.9')], [200, 61], 'limited')
  for (let turn = 0; turn < 9; turn += 1) t.equal(await from('203.0.113.1'), 200, 'and others are not')
  t.match(await reload({ TRUSTED_PROXIES: 'none' }), { code: 0, out: /used now: TRUSTED_PROXIES/ })
  t.same([await from('203.0.113.1'), await balanceOf('127.0.0.1')], [200, 61], 'nobody is believed now')
  t.match(await reload({ TRUSTED_PROXIES: '127.0.0.1' }), { code: 0 })

  await t.test('the key of the operator, on all services', async (t) => {
    const statusWith = async (key: string, url: string): Promise<number> =>
      (await fetch(url, { headers: { authorization: `Bearer ${key}`, 'x-forwarded-for': '203.0.113.5' } }))
        .status
    const places = [
      `${gateway}/gateway/admin/overview`,
      `${upload}/admin/uploads`,
      `${payment}/admin/credits`,
    ]
    t.match(await reload({ ADMIN_API_KEY: 'the-second-key' }), { code: 0, out: 'used now: ADMIN_API_KEY\n' })
    for (const url of places)
      t.same(
        [await statusWith('the-first-key', url), await statusWith('the-second-key', url)],
        [401, 200],
        url,
      )
    t.equal(await statusWith('the-second-key', `${gateway}/gateway/admin/uploads`), 200, 'it is passed on')
  })

  await t.test('wallets whose items are refused', async (t) => {
    const signer = ed25519Signer(Buffer.alloc(32, 7))
    const post = async (words: string): Promise<number> => {
      const body = signItem(signer, { tags: [] }, Buffer.from(words))
      const headers = { 'content-type': 'application/octet-stream' }
      return (await fetch(`${upload}/tx`, { method: 'POST', body, headers })).status
    }
    t.equal(await post('one'), 200)
    t.match(await reload({ UPLOAD_BLOCKED_OWNERS: normalizedAddress(signer.owner) }), { code: 0 })
    t.equal(await post('two'), 403)
    t.match(await reload({ UPLOAD_BLOCKED_OWNERS: '' }), { code: 0 })
    t.equal(await post('two'), 200)
  })

  await t.test('what waits is named, and a wrong setting changes nothing', async (t) => {
    const waits = await reload({ EDGE_THREADS: '1', LOG_LEVEL: 'debug' })
    t.match(waits, { code: 0, out: 'used now: LOG_LEVEL\nused from the next start on: EDGE_THREADS\n' })
    const wrong = await reload({ RATE_LIMITER_IP_TOKENS_PER_BUCKET: '5', PORT: 'many', LOG_LEVEL: 'info' })
    t.match(wrong, {
      code: 1,
      out: /^refused: PORT: must be a whole number.*\nAll settings stay as they were\.\n$/,
    })
    t.equal(await balanceOf('198.51.100.9'), 61, 'buckets are as large as before')
    t.match(await reload({ PORT: '0', RATE_LIMITER_IP_TOKENS_PER_BUCKET: '70' }), {
      code: 0,
      out: /LOG_LEVEL/,
    })
    const json = await sluice(['reload', '--json'], { DATA_PATH: dataPath })
    t.match(JSON.parse(json.out), { used: [], waiting: ['EDGE_THREADS'], wrong: [], refused: [] })
    child.kill('SIGHUP')
    await eventually(
      'a signal by hand does the same',
      () => log.filter(({ used }) => used !== undefined).length >= 9,
    )
  })

  t.equal(line.sockets.size, 1, 'all over one connection')
  const body: Buffer[] = []
  download.on('data', (piece: Buffer) => body.push(piece))
  await once(download, 'end')
  const whole = Buffer.concat(body)
  t.ok(whole.subarray(whole.indexOf('\r\n\r\n') + 4).equals(large.bytes), 'the download came whole')
  t.equal(await stop(), 0)
  t.match(await sluice(['reload'], { DATA_PATH: dataPath }), { code: 3, err: /no program runs on/ })
})

t.test('a signal that comes early counts when the program is up', async (t) => {
  const folder = t.testdir({ settings: '' })
  const child = spawn(process.execPath, [...program, 'start'], {
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      SERVICES: 'gateway',
      DEVNET_PORT: '0',
      DEVNET_SEED: 'false',
      DATA_PATH: join(folder, 'data'),
      SETTINGS_FILE: join(folder, 'settings'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const printed: string[] = []
  createInterface({ input: child.stdout }).on('line', (text) => printed.push(text))
  const has = (words: string): boolean => printed.some((text) => text.includes(words))
  await eventually('it hears the signal', () => child.exitCode !== null || hears(child.pid ?? 0))
  t.notOk(has('"ready"'), 'long before it is up')
  await eventually('it is up all the same', () => {
    child.kill('SIGHUP')
    return child.exitCode !== null || has('"ready"')
  })
  await eventually('and has read its settings again', () => child.exitCode !== null || has('were read again'))
  child.kill('SIGKILL')
  t.same(await exited, [null, 'SIGKILL'], 'only this ended it')
  const stale = await sluice(['reload'], { DATA_PATH: join(folder, 'data') })
  t.match(
    stale,
    { code: 3, err: /no program runs/ },
    'what a killed program left is nobody who could be signalled',
  )
  t.match(await sluice(['reload'], { DATA_PATH: join(folder, 'none') }), { code: 3 })
  const help = await sluice(['reload', '--help'])
  t.match(help, { code: 0, out: /Usage: sluice reload[\s\S]*Examples:\n {2}sluice reload\n/ })
  t.match(await sluice(['settings', 'sluice', 'reload']), {
    code: 0,
    out: /TRUSTED_PROXIES[\s\S]*used at once by sluice reload/,
  })
})

/** Whether a process catches SIGHUP (proc(5): a bit for each signal). */
function hears(pid: number): boolean {
  try {
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
    return (BigInt(`0x${caught}`) & 1n) === 1n
  } catch {
    return false
  }
}
