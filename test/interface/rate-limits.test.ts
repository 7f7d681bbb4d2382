/** The whole program with limits: who is charged, how much, what is free, and what a kill leaves. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { eventually } from '../eventually.js'
import { type Running, run, seeded, twoEdges } from '../flow/running.js'
import { upstream } from '../flow/upstream.js'

/** More than the buffers of a socket take. */
const largeFile = { id: `${'L'.repeat(42)}A`, bytes: Buffer.alloc(20 * 1024 * 1024, 'large') }

const limited = {
  ...seeded,
  SERVICES: 'gateway',
  ...twoEdges,
  ENABLE_RATE_LIMITER: 'true',
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: '30000',
  RATE_LIMITER_IP_REFILL_PER_SEC: '0',
  RATE_LIMITER_RESOURCE_REFILL_PER_SEC: '0',
  RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST: '198.51.100.0/24',
  ADMIN_API_KEY: 'a-key-that-is-long-enough',
}

const admin = { authorization: 'Bearer a-key-that-is-long-enough' }

function from(address: string, more: Record<string, string> = {}): Record<string, string> {
  return { 'x-forwarded-for': address, ...more }
}

async function balance({ urls }: Running, address: string): Promise<{ tokens: number; paidTokens: number }> {
  const answer = await fetch(`${urls.gateway}/gateway/rate-limit/ip/${address}`)
  if (answer.status === 404) return { tokens: 30_000, paidTokens: 0 }
  return (await answer.json()) as { tokens: number; paidTokens: number }
}

t.test('limits, from the first request to the one after kill -9', async (t) => {
  const folder = t.testdir()
  const trusted = await upstream(t, (id, _request, response) => {
    if (id !== largeFile.id) response.writeHead(404).end()
    else response.writeHead(200, { 'content-length': largeFile.bytes.length }).end(largeFile.bytes)
  })
  const settings = { ...limited, TRUSTED_GATEWAYS_URLS: JSON.stringify({ [trusted.url]: 1 }) }
  let running = await run(t, folder, settings)
  const { site = '', page = '', large: onChain = '' } = running.examples
  const large = largeFile.id
  const gateway = (): string => running.urls.gateway ?? ''
  const get = async (path: string, headers: Record<string, string>, method = 'GET'): Promise<Response> => {
    const answer = await fetch(`${gateway()}${path}`, { headers, method, redirect: 'manual' })
    await answer.arrayBuffer()
    return answer
  }

  await t.test('each answer costs what it sends', async (t) => {
    let address = 0
    const cost = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
      address += 1
      const { status } = await get(path, from(`203.0.113.${address}`, headers), method)
      return [status, 30_000 - (await balance(running, `203.0.113.${address}`)).tokens]
    }
    const html = await fetch(`${gateway()}/raw/${page}`, { headers: from('198.51.100.2') })
    const pageTokens = Math.ceil((await html.arrayBuffer()).byteLength / 1024)
    t.same(await cost(`/raw/${page}`), [200, pageTokens], '1 token for each KiB that was begun')
    t.same(await cost(`/raw/${large}`), [200, 20_480], '20 MiB: 1 token a KiB')
    t.same(await cost(`/raw/${large}`, { range: 'bytes=0-10239' }), [206, 10])
    t.same(await cost(`/raw/${large}`, {}, 'HEAD'), [200, 1])
    const { headers } = await fetch(`${gateway()}/raw/${large}`, {
      method: 'HEAD',
      headers: from('198.51.100.1'),
    })
    t.same(await cost(`/raw/${large}`, { 'if-none-match': headers.get('etag') ?? '' }), [304, 1])
    t.same(await cost(`/${site}/`), [200, pageTokens], 'a manifest is charged once, for what it led to')
    t.same(await cost(`/${'A'.repeat(43)}`), [404, 1], 'an id that nobody has')
    t.same(await cost('/gateway/info'), [200, 0])
    t.same(await cost('/graphql?query={__typename}'), [200, 0])
    t.same(await cost('/info'), [200, 0])
    const place = await fetch(`${gateway()}/tx/${onChain}/offset`)
    const { offset } = (await place.json()) as { offset: string }
    t.same(await cost(`/chunk/${offset}`, {}, 'HEAD'), [200, 1])
    // What a chunk that is not there had more in advance is given back behind the answer, on a thread of its own.
    t.same((await cost('/chunk/1'))[0], 404)
    const priced = `203.0.113.${address}`
    await eventually('the price is taken', async () => 30_000 - (await balance(running, priced)).tokens === 1)
    const [status, tokens] = await cost(`/chunk/${offset}/data`)
    t.ok(
      status === 200 && tokens !== undefined && tokens >= 1 && tokens <= 256,
      `a chunk's price is corrected: ${tokens}`,
    )
  })

  await t.test('a client that leaves early gets tokens back for bytes that were not sent', async (t) => {
    const socket = connect(Number(new URL(gateway()).port), '127.0.0.1')
    socket.write(`GET /raw/${large} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.100\r\n\r\n`)
    await once(socket, 'data')
    socket.pause()
    await pause(100)
    const during = await balance(running, '203.0.113.100')
    t.ok(during.tokens <= 30_000 - 20_480, `taken at once: ${during.tokens} are left`)
    socket.destroy()
    const tokens = await eventually('tokens are given back', async () => {
      const { tokens } = await balance(running, '203.0.113.100')
      return tokens === during.tokens ? undefined : tokens
    })
    t.ok(tokens > during.tokens && tokens < 30_000, `${tokens} after it left`)
  })

  await t.test('a client without tokens is told which limit, others go on', async (t) => {
    t.equal((await get(`/raw/${large}`, from('203.0.113.101'))).status, 200)
    const denied = await fetch(`${gateway()}/raw/${large}`, { headers: from('203.0.113.101') })
    t.equal(denied.status, 429)
    t.same(await denied.json(), {
      error: 'Too Many Requests',
      code: 'SLC_THROTTLED',
      message: 'IP rate limit exceeded',
    })
    t.equal(denied.headers.get('x-error-code'), 'SLC_THROTTLED')
    t.equal(denied.headers.get('cache-control'), 'no-store')
    t.equal(denied.headers.get('retry-after'), null, 'it does not refill here')
    t.equal((await get(`/raw/${large}`, from('203.0.113.102'))).status, 200)
    for (let turn = 0; turn < 3; turn += 1)
      t.equal((await get(`/raw/${large}`, from('198.51.100.9'))).status, 200, 'exempt')
    const lied = await get(`/raw/${large}`, from('198.51.100.9, 203.0.113.101'))
    t.equal(lied.status, 429, 'only the nearest hop counts')
  })

  await t.test('balances and top-ups', async (t) => {
    const url = `${gateway()}/gateway/rate-limit`
    const post = async (path: string, body: unknown, headers: Record<string, string> = admin) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const answer = await fetch(`${url}${path}`, { method: 'POST', body: text, headers })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    }
    t.match(await post('/ip/203.0.113.103', { tokens: 5000, tokenType: 'paid' }), {
      status: 200,
      body: {
        ip: '203.0.113.103',
        paidTokens: 5000,
        topUp: { tokensAdded: 5000, tokenType: 'paid', multiplierApplied: 1 },
      },
    })
    t.equal(
      (await balance(running, '127.0.0.1')).paidTokens,
      0,
      'the one in the path is credited, not who asks',
    )
    const wrong: [string, unknown, Record<string, string>, number][] = [
      ['/ip/203.0.113.103', { tokens: 5 }, {}, 401],
      ['/ip/203.0.113.103', { tokens: 5 }, { authorization: 'Bearer another' }, 401],
      ['/ip/300.0.0.1', { tokens: 5 }, admin, 400],
      ['/ip/203.0.113.103', { tokens: -5 }, admin, 400],
      ['/ip/203.0.113.103', { tokens: 1.5 }, admin, 400],
      ['/ip/203.0.113.103', { tokens: '5' }, admin, 400],
      ['/ip/203.0.113.103', { tokens: 1e300 }, admin, 400],
      ['/ip/203.0.113.103', { tokens: 5, tokenType: 'regular' }, admin, 400],
      ['/ip/203.0.113.103', { tokens: 5, tokenType: 'other' }, admin, 400],
      ['/ip/203.0.113.103', '[1]', admin, 400],
      ['/ip/203.0.113.103', '{', admin, 400],
      ['/ip/203.0.113.103', 'x'.repeat(100_000), admin, 400],
      ['/resource', { tokens: 5 }, admin, 400],
      ['/resource', { tokens: 5, path: '/a b' }, admin, 400],
      ['/resource?path=/a&method=BREW', { tokens: 5 }, admin, 400],
    ]
    for (const [path, body, headers, status] of wrong) {
      t.equal(
        (await post(path, body, headers)).status,
        status,
        `${path} ${JSON.stringify(body).slice(0, 60)}`,
      )
    }
    t.match(await post('/resource', { tokens: 7, path: `/raw/${page}`, host: 'x.test' }), {
      status: 200,
      body: { method: 'GET', host: 'x.test', path: `/raw/${page}`, paidTokens: 7 },
    })
    t.match(await (await fetch(`${url}/resource?path=/never-asked`)).json(), { error: 'Bucket not found' })
    t.match(await (await fetch(`${gateway()}/gateway/info`)).json(), {
      rateLimiter: {
        enabled: true,
        dataEgress: { buckets: { ip: { capacity: 30_000, capacityBytes: 30_720_000 } } },
      },
    })
  })

  await t.test(
    'after kill -9 paid tokens are there, and a bucket that was used up is not full',
    async (t) => {
      t.equal((await balance(running, '203.0.113.101')).tokens, 9520)
      await get(`/raw/${large}`, from('203.0.113.103'))
      await get(`/raw/${large}`, from('203.0.113.103', { range: 'bytes=0-13707263' }))
      const before = await balance(running, '203.0.113.103')
      t.same([before.tokens, before.paidTokens], [0, 1134])
      // Buckets are written out each second, which nothing outside of the program shows.
      await pause(2500)
      await fetch(`${gateway()}/gateway/rate-limit/ip/203.0.113.104`, {
        method: 'POST',
        headers: admin,
        body: JSON.stringify({ tokens: 12_345 }),
      })
      await running.kill()
      running = await run(t, folder, settings)
      t.match(await balance(running, '203.0.113.104'), { paidTokens: 12_345 }, 'answered, so safe')
      t.match(await balance(running, '203.0.113.103'), { tokens: 0, paidTokens: 1134 })
      t.match(await balance(running, '203.0.113.101'), { tokens: 9520 })
      t.equal(await running.stop(), 0)
    },
  )
})

t.test('settings that are wrong stop the start', async (t) => {
  for (const [name, value] of [
    ['TRUSTED_PROXIES', '10.0.0.0/33'],
    ['TRUSTED_PROXIES', '10.0.0.1,localhost'],
    ['RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST', '10.0.0'],
    ['RATE_LIMITER_REDIS_ENDPOINT', 'http://somewhere'],
  ] as const) {
    await t.rejects(run(t, t.testdir(), { [name]: value }), {
      message: new RegExp(`ended with [1-9].*${name}`, 's'),
    })
  }
})
