/** Answers over HTTPS are those over HTTP, byte for byte; addresses in them say https; limits count both together. */
import { createHash } from 'node:crypto'
import { type IncomingMessage, Agent as PlainAgent, request as requestPlain } from 'node:http'
import { Agent, request } from 'node:https'
import t from 'tap'
import { tagOf } from '../../src/format/tag.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { random } from '../property.js'
import { run, seeded, twoEdges } from './running.js'

const answers = Number(process.env.ANSWERS ?? 400)
t.setTimeout(1_200_000 + answers * 10)
const items = 40

const environment = {
  ...seeded,
  ...twoEdges,
  TLS_PORT: '0',
  TLS_SELF_SIGNED: 'true',
  UPLOAD_FREE_ITEM_BYTES: '10000000',
  UPLOAD_FREE_WALLET_BYTES: '200000000',
}

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

const plainAgent = new PlainAgent({ keepAlive: true, maxSockets: 8 })
const agent = new Agent({ keepAlive: true, maxSockets: 8, rejectUnauthorized: false })
t.teardown(() => {
  plainAgent.destroy()
  agent.destroy()
})

function answerOf(
  base: string,
  path: string,
  method = 'GET',
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { hostname, port, protocol } = new URL(base)
  return new Promise((resolve, reject) => {
    const take = (answer: IncomingMessage): void => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.once('error', reject)
      answer.once('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(pieces) }),
      )
    }
    // The same name for both: some answers depend on it.
    const options = { host: hostname, port, path, method, headers: { host: 'localhost:1', ...headers } }
    const sent =
      protocol === 'https:'
        ? request({ ...options, agent, servername: 'localhost' }, take)
        : requestPlain({ ...options, agent: plainAgent }, take)
    sent.once('error', reject).end()
  })
}

/** Of an answer what does not change from one second to the next. */
function lasting({ status, headers, body }: Answer) {
  const { date, age, signature, 'signature-input': input, 'x-request-id': id, ...others } = headers
  const boundary = /boundary=(\S+)/.exec(others['content-type'] ?? '')?.[1]
  const text =
    boundary === undefined ? body : Buffer.from(body.toString('latin1').replaceAll(boundary, ''), 'latin1')
  if (boundary !== undefined) others['content-type'] = others['content-type']?.replace(boundary, '')
  return { status, others, digest: createHash('sha256').update(text).digest('hex') }
}

function pick<One>(of: readonly One[]): One {
  return of[Math.floor(random() * of.length)] as One
}

t.test('answers of all kinds are the same over both', async (t) => {
  const { urls, examples } = await run(t, t.testdir(), { ...environment, SERVICES: 'gateway,upload' })
  const { gateway = '', https = '', upload = '' } = urls
  const signer = ed25519Signer(Buffer.alloc(32, 11))
  const ids: string[] = []
  for (let at = 0; at < items; at += 1) {
    const bytes = Buffer.alloc(1 + Math.floor(random() * (at % 8 === 0 ? 3_000_000 : 60_000)), `item ${at} `)
    const body = signItem(signer, { tags: [tagOf('Content-Type', 'text/plain')] }, bytes)
    const headers = { 'content-type': 'application/octet-stream' }
    const answer = await fetch(`${upload}/tx`, { method: 'POST', body, headers })
    ids.push(((await answer.json()) as { id: string }).id)
  }
  const all = [...Object.values(examples), ...ids]
  const sizes = new Map<string, { size: number; tag: string }>()
  for (const id of all) {
    const { headers, body } = await answerOf(gateway, `/raw/${id}`)
    sizes.set(id, { size: body.length, tag: headers.etag ?? '' })
  }
  const one = async (): Promise<void> => {
    const id = pick(all)
    const { size, tag } = sizes.get(id) ?? { size: 0, tag: '' }
    const start = Math.floor(random() * size)
    const end = start + Math.floor(random() * (size - start))
    const headers = pick<Record<string, string>>([
      {},
      {},
      { range: `bytes=${start}-${end}` },
      { range: `bytes=${start}-` },
      { range: `bytes=-${1 + end - start}` },
      { range: `bytes=0-0,${start}-${end}` },
      { range: `bytes=${size}-` },
      { 'if-none-match': tag },
    ])
    const method = pick(['GET', 'GET', 'GET', 'HEAD'])
    const path = pick([`/raw/${id}`, `/raw/${id}`, `/${id}`])
    // What is known of content grows meanwhile, from its first request on: its header lines are those of one moment.
    for (let tries = 0; ; tries += 1) {
      const got = lasting(await answerOf(https, path, method, headers))
      const wanted = lasting(await answerOf(gateway, path, method, headers))
      const isSame = JSON.stringify(got).replaceAll('https://', 'http://') === JSON.stringify(wanted)
      if (isSame) return
      const isMeanwhile = got.digest === wanted.digest && got.status === wanted.status && tries < 5
      if (isMeanwhile) continue
      t.same(got, wanted, `${method} ${path} ${JSON.stringify(headers)}`)
      return
    }
  }
  let left = answers
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (left-- > 0) await one()
    }),
  )
  t.pass(`${answers} answers`)
})

t.test('addresses in answers say https', async (t) => {
  const { urls, examples } = await run(t, t.testdir(), {
    ...environment,
    SERVICES: 'gateway',
    ARNS_ROOT_HOST: 'localhost',
    INDEX_PUBLISH: 'true',
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: '10',
    RATE_LIMITER_IP_REFILL_PER_SEC: '0',
    ENABLE_X_402_USDC_DATA_EGRESS: 'true',
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: `0x${'1'.repeat(40)}`,
    X_402_USDC_FACILITATOR_URL: 'http://127.0.0.1:1',
  })
  const { https = '', gateway = '' } = urls
  const { site = '', large = '' } = examples
  const page = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  const of = (base: string, path: string, headers = {}): Promise<Answer> =>
    answerOf(base, path, 'GET', { host: `localhost:${new URL(base).port}`, ...headers })
  const address = (base: string): RegExp => new RegExp(`^${base.startsWith('https') ? 'https' : 'http'}://`)
  for (const base of [https, gateway]) {
    for (const path of [`/${site}`, `/${site}/`]) {
      const { location } = (await of(base, path, page)).headers
      if (location?.includes('://') === true) t.match(location, address(base), `${path} leads to ${location}`)
    }
    const bare = await of(base, `/${large}`, page)
    t.match(bare.headers.location ?? `${base}/`, address(base))
    const offered = await of(base, `/raw/${large}`)
    t.equal(offered.status, 402, 'the allowance of both listeners is one')
    const { accepts, resource } = JSON.parse(offered.body.toString()) as {
      accepts: { resource?: string }[]
      resource?: { url: string }
    }
    const named = [
      ...accepts.flatMap((one) => one.resource ?? []),
      ...(resource === undefined ? [] : [resource.url]),
    ]
    t.ok(named.length > 0)
    for (const url of named) t.match(url, address(base))
    const landing = await of(base, '/', { accept: 'text/html', 'x-forwarded-for': '203.0.113.9' })
    const own = [...landing.body.toString().matchAll(/(?:href|src|action)="(https?:\/\/[^"]+)"/g)].map(
      ([, url]) => url,
    )
    for (const url of own)
      if (new URL(url ?? '').port === new URL(base).port) t.match(url, address(base), `link ${url}`)
  }
})

t.test('what a client took over one listener is gone at the other', async (t) => {
  const { urls, examples } = await run(t, t.testdir(), {
    ...environment,
    SERVICES: 'gateway',
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: '100',
    RATE_LIMITER_IP_REFILL_PER_SEC: '0',
  })
  const { gateway = '', https = '' } = urls
  const { page = '' } = examples
  const path = `/raw/${page}`
  const from = { 'x-forwarded-for': '203.0.113.50' }
  const statuses = { plain: 0, secure: 0 }
  const { body } = await answerOf(gateway, path, 'GET', { 'x-forwarded-for': '203.0.113.51' })
  const each = Math.ceil(body.length / 1024)
  for (let at = 0; at < 200; at += 1) {
    const [base, kind] = at % 2 === 0 ? ([gateway, 'plain'] as const) : ([https, 'secure'] as const)
    if ((await answerOf(base, path, 'GET', from)).status === 200) statuses[kind] += 1
  }
  t.equal(statuses.plain + statuses.secure, Math.floor(100 / each), JSON.stringify(statuses))
  t.ok(Math.abs(statuses.plain - statuses.secure) <= 1)
  for (const base of [gateway, https]) {
    t.equal((await answerOf(base, path, 'GET', from)).status, 429)
    const balance = await answerOf(base, '/gateway/rate-limit/ip/203.0.113.50')
    t.match(JSON.parse(balance.body.toString()), { tokens: 100 % each })
  }
})
