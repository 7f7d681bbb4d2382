import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { isRefusal, type Refusal } from '../../../src/format/refusal.js'
import type { Found, Wanted } from '../../../src/source/source.js'
import { NetworkPeers, type PeerOptions } from '../../../src/source/upstream/network-peers.js'
import { eventually } from '../../eventually.js'
import { hopRules, sha256, someId, trail, type Upstream, upstream } from '../rig.js'

const never = new AbortController().signal
const rest = { failuresMax: 2, restMs: 60_000, restMaxMs: 60_000 }
const verified = { 'x-ar-io-verified': 'true' }

function peersOf(
  servers: readonly { url: string }[],
  more: Partial<PeerOptions> = {},
  clock = systemClock,
): NetworkPeers {
  const options: PeerOptions = {
    headMs: 10_000,
    stallMs: 10_000,
    ...hopRules,
    release: 'test',
    connectionsMax: 8,
    peers: servers.map(({ url }) => url),
    candidatesMax: 5,
    homesMax: 3,
    hedgeMs: 60_000,
    hedgedMax: 3,
    concurrentMax: 10,
    weightDelta: 2,
    rest,
    ...more,
  }
  return new NetworkPeers(options, clock)
}

function wanted(more: Partial<Wanted> = {}): Wanted {
  return { id: someId(), hints: {}, provenance: trail, avoid: new Set(), ...more }
}

async function textOf(found: Found | Refusal): Promise<string> {
  if (isRefusal(found)) return found.isUnsure === true ? 'unsure' : found.refused
  let text = ''
  for await (const piece of found.body)
    text += isRefusal(piece) ? piece.refused : Buffer.from(piece).toString()
  return text
}

/** A peer that answers so; closed with the test. */
async function peer(
  t: Test,
  body: string | undefined,
  headers: Record<string, string> = verified,
): Promise<Upstream> {
  const server = await upstream((_, response) => {
    if (body === undefined) response.writeHead(404).end()
    else response.writeHead(200, { 'content-length': body.length, ...headers }).end(body)
  })
  t.teardown(() => server.close())
  return server
}

t.test("answers to a client's own hints do not lower a peer's weight", async (t) => {
  const server = await upstream((request, response) => {
    const isLed = request.headers['x-ar-io-via'] !== 'gateway.example' || request.headers.range !== undefined
    if (isLed) response.writeHead(508).end()
    else response.writeHead(200, { 'content-length': 5, ...verified }).end('bytes')
  })
  t.teardown(() => server.close())
  const source = peersOf([server])
  const led: Partial<Wanted>[] = [
    { provenance: { ...trail, hops: 1, via: ['a.example'] } },
    { window: { start: 100_000_000, end: 100_000_001 } },
  ]
  for (let turn = 0; turn < 5; turn += 1) {
    for (const more of led) t.equal(await textOf(await source.open(wanted(more), never)), 'upstream')
  }
  t.equal(await textOf(await source.open(wanted(), never)), 'bytes', 'it is asked on, for everybody else')
  t.equal(server.requests.length, 11)
  await source.close()
})

t.test('a peer that claims to have it is asked, and its bytes are verified', async (t) => {
  const server = await peer(t, 'bytes')
  const source = peersOf([server])
  const found = await source.open(wanted(), never)
  t.match(found, { name: 'ar-io-network', origin: server.url, trusted: false, proven: false, sizeBytes: 5 })
  t.equal(await textOf(found), 'bytes')
  t.match(server.requests[0]?.headers, { 'x-ar-io-hops': '1', 'x-ar-io-via': 'gateway.example' })
  await source.close()

  const silent = peersOf([await peer(t, 'bytes', {})])
  t.equal(await textOf(await silent.open(wanted(), never)), 'upstream', 'nobody vouches')
  const digest = sha256(Buffer.from('bytes'))
  const attributes = { id: someId(), size: 5, verified: true, trusted: false, digest }
  t.equal(await textOf(await silent.open(wanted({ attributes }), never)), 'bytes', 'a proven digest does')
  await silent.close()
  const liar = peersOf([
    await peer(t, 'bytes', { ...verified, 'x-ar-io-digest': sha256(Buffer.from('x')).toString('base64url') }),
  ])
  t.equal(await textOf(await liar.open(wanted({ attributes }), never)), 'forged')
  await liar.close()
})

t.test(
  'what one peer lacks another is asked for; what all lack is unknown, what one failed is not',
  async (t) => {
    const [empty, full] = [await peer(t, undefined), await peer(t, 'here')]
    const source = peersOf([empty, full])
    for (let time = 0; time < 8; time += 1) t.equal(await textOf(await source.open(wanted(), never)), 'here')
    t.ok((source.weights.get(full.url) ?? 0) > 50, 'who answers is asked more often')
    t.equal(source.weights.get(empty.url), 50, 'who has it not is no worse for it')
    await source.close()
    const none = peersOf([empty])
    t.equal(await textOf(await none.open(wanted(), never)), 'unknown')
    await none.close()

    const gone = await upstream((_, response) => response.destroy())
    t.teardown(() => gone.close())
    const failing = peersOf([empty, gone])
    for (let time = 0; time < 3; time += 1)
      t.equal(await textOf(await failing.open(wanted(), never)), time < 2 ? 'unsure' : 'unknown')
    t.ok((failing.weights.get(gone.url) ?? 99) < 50)
    await failing.close()
    const alone = peersOf([gone])
    const before = gone.requests.length
    for (let time = 0; time < 3; time += 1)
      t.equal(await textOf(await alone.open(wanted(), never)), 'upstream')
    t.equal(gone.requests.length, before + 3, 'nobody else could have answered')
    await alone.close()
  },
)

t.test('what no peer answers well puts none of them away', async (t) => {
  const known = someId()
  const ways: Readonly<Record<string, (response: ServerResponse) => void>> = {
    silence: () => undefined,
    'a failure of its own': (response) => response.writeHead(502).end(),
    'a hang-up': (response) => response.destroy(),
  }
  for (const [why, fail] of Object.entries(ways)) {
    const respond = (request: IncomingMessage, response: ServerResponse): void => {
      if (request.url?.endsWith(known) === true) {
        response.writeHead(200, { 'content-length': 4, ...verified }).end('here')
      } else fail(response)
    }
    const servers = await Promise.all([0, 1, 2].map(() => upstream(respond)))
    const source = peersOf(servers, { headMs: 1500, hedgeMs: 5 })
    for (let time = 0; time < 4; time += 1) await source.open(wanted(), never)
    t.equal(await textOf(await source.open(wanted({ id: known }), never)), 'here', why)
    t.ok(Math.min(...source.weights.values()) >= 50, 'and makes none worse')
    await source.close()
    await Promise.all(servers.map((server) => server.close()))
  }
})

t.test(
  'a peer that is slow about what nobody knows is the worse for it only where another one has it',
  async (t) => {
    const known = someId()
    const ways: Readonly<Record<string, (response: ServerResponse) => void>> = {
      silence: () => undefined,
      'an error': (response) => response.writeHead(504).end(),
    }
    for (const [why, fail] of Object.entries(ways)) {
      const here = (response: ServerResponse): unknown =>
        response.writeHead(200, { 'content-length': 4, ...verified }).end('here')
      let hasQuick = false
      const [slow, quick] = await Promise.all([
        upstream(({ url = '' }, response) => {
          if (url.endsWith(known) || url.endsWith('healthcheck')) here(response)
          else fail(response)
        }),
        upstream((_, response) => void (hasQuick ? here(response) : response.writeHead(404).end())),
      ])
      const source = peersOf([slow, quick], { headMs: 1500, hedgeMs: 5 })
      for (let time = 0; time < 4; time += 1)
        t.equal(await textOf(await source.open(wanted(), never)), 'unsure', 'that is no absence')
      t.equal(source.weights.get(slow.url), 50, why)
      t.equal(await textOf(await source.open(wanted({ id: known }), never)), 'here')
      hasQuick = true
      for (let time = 0; time < 8; time += 1) await source.open(wanted(), never)
      if (why !== 'silence') t.ok((source.weights.get(slow.url) ?? 99) < 52)
      await source.close()
      await Promise.all([slow.close(), quick.close()])
    }
  },
)

t.test(
  'a peer without a head for anything is put away, one that is slow about unknown ids is not',
  async (t) => {
    const isProbe = (path = ''): boolean => path.endsWith('healthcheck')
    for (const isMute of [true, false]) {
      let isBack = false
      const [silent, empty] = await Promise.all([
        upstream(({ url }, response) => {
          if (isBack || (!isMute && isProbe(url))) response.writeHead(404).end()
        }),
        upstream((_, response) => response.writeHead(404).end()),
      ])
      const received = (): number => silent.requests.filter(({ url }) => !isProbe(url)).length
      const pause = { ...rest, restMs: 100, restMaxMs: 100 }
      const source = peersOf([silent, empty], { headMs: 1500, hedgeMs: 5, rest: pause })
      if (isMute) {
        await eventually('only the other one is asked', async () => {
          const before = received()
          const answer = await textOf(await source.open(wanted(), never))
          return received() === before && answer === 'unknown'
        })
        const before = received()
        for (let time = 0; time < 3; time += 1) await source.open(wanted(), never)
        t.equal(received(), before, 'also not as a trial')
        isBack = true
        await eventually('it is asked again once it answers', async () => {
          await source.open(wanted(), never)
          return received() > before
        })
      } else {
        for (let time = 1; time <= 8; time += 1) {
          await source.open(wanted(), never)
          t.equal(received(), time)
        }
        t.equal(source.weights.get(silent.url), 50)
        t.ok(silent.requests.length > received(), 'it was asked for something else')
      }
      await source.close()
      await Promise.all([silent.close(), empty.close()])
    }
  },
)

t.test('a client with many requests that wait for heads makes room for one with fewer', async (t) => {
  const known = someId()
  const server = await upstream((request, response) => {
    if (request.url?.endsWith(known) !== true) return
    response.writeHead(200, { 'content-length': 4, ...verified }).end('here')
  })
  const source = peersOf([server], { concurrentMax: 3 })
  const ending = new AbortController()
  const stranger = (client = '10.0.0.1'): Promise<Found | Refusal> =>
    source.open(wanted({ client }), ending.signal)
  const openings = [stranger(), stranger(), stranger('10.1.0.1')]
  t.equal(await textOf(await stranger()), 'busy', 'its own requests do not')
  t.equal(await textOf(await source.open(wanted({ id: known, client: '192.0.2.1' }), never)), 'here')
  t.equal(await textOf((await openings[0]) as Found | Refusal), 'late', 'the one that has waited longest')
  ending.abort()
  await Promise.all(openings)
  await source.close()
  await server.close()
})

t.test('bodies that one client reads slowly leave places at every peer for others', async (t) => {
  const known = someId()
  const server = await upstream((request, response) => {
    const isKnown = request.url?.endsWith(known) === true
    response.writeHead(200, { 'content-length': isKnown ? 4 : 1_000_000, ...verified })
    if (isKnown) response.end('here')
    else response.write('here')
  })
  const source = peersOf([server])
  const ending = new AbortController()
  let read = 0
  for (let at = 0; at < 32; at += 1)
    if (!isRefusal(await source.open(wanted({ client: '10.0.0.1' }), ending.signal))) read += 1
  t.equal(read, 4, 'half of its places')
  for (const client of ['192.0.2.1', '198.51.100.1'])
    t.equal(await textOf(await source.open(wanted({ id: known, client }), never)), 'here')
  ending.abort()
  await source.close()
  await server.close()
})

t.test('a failure does not count against a peer that answered another request meanwhile', async (t) => {
  const slow = someId()
  let isBegun = (): void => undefined
  const begun = new Promise<void>((resolve) => {
    isBegun = resolve
  })
  let fail = (): void => undefined
  const [busy, empty] = await Promise.all([
    upstream((request, response) => {
      if (request.url?.endsWith(slow) !== true) return void response.writeHead(404).end()
      fail = () => response.destroy()
      isBegun()
    }),
    upstream((_, response) => response.writeHead(404).end()),
  ])
  const source = peersOf([busy, empty], { hedgeMs: 5, rest: { ...rest, failuresMax: 1 } })
  const opening = source.open(wanted({ id: slow }), never)
  await begun
  await source.open(wanted(), never)
  fail()
  t.equal(await textOf(await opening), 'unsure')
  t.equal(source.weights.get(busy.url), 50)
  const before = busy.requests.length
  await source.open(wanted(), never)
  t.equal(busy.requests.length, before + 1)
  await source.close()
  await Promise.all([busy.close(), empty.close()])
})

t.test('a peer that was put away gets what no other may get', async (t) => {
  const [gone, empty] = await Promise.all([
    upstream((_, response) => response.destroy()),
    upstream((_, response) => response.writeHead(404).end()),
  ])
  const source = peersOf([gone, empty])
  for (let time = 0; time < 3; time += 1) await source.open(wanted(), never)
  t.equal(gone.requests.length, 2)
  t.equal(await textOf(await source.open(wanted({ avoid: new Set([empty.url]) }), never)), 'upstream')
  t.equal(gone.requests.length, 3)
  await source.close()
  await Promise.all([gone.close(), empty.close()])
})

t.test('peers that are all silent are left after half of the time', async (t) => {
  const headMs = 60_000
  const clock: Clock = {
    ...systemClock,
    after: (ms, act) => systemClock.after(ms === headMs / 2 ? 10 : ms, act),
  }
  let fail = (response: ServerResponse): unknown => response.destroy()
  const servers = await Promise.all([0, 1].map(() => upstream((_, response) => void fail(response))))
  const source = peersOf(servers, { headMs, hedgeMs: 1, rest: { ...rest, failuresMax: 1 } }, clock)
  t.equal(await textOf(await source.open(wanted(), never)), 'upstream')
  fail = () => undefined
  t.equal(await textOf(await source.open(wanted(), never)), 'late', 'the next source is used soon')
  await source.close()
  await Promise.all(servers.map((server) => server.close()))
})

t.test('beside a silent peer another is asked, and the first is dropped when that answers', async (t) => {
  let left = false
  const mute = await upstream((_, response) => {
    response.on('close', () => {
      left = true
    })
  })
  t.teardown(() => mute.close())
  const quick = await peer(t, 'quick')
  const source = peersOf([mute, quick], { hedgeMs: 5 })
  for (let time = 0; time < 4; time += 1) t.equal(await textOf(await source.open(wanted(), never)), 'quick')
  if (mute.requests.length > 0) await eventually('the silent peer is given up', () => left)
  await source.close()
})

t.test('loop defence: passed peers, too many hops, our own name, or no forwarding', async (t) => {
  const server = await peer(t, 'x')
  const source = peersOf([server])
  for (const provenance of [
    { ...trail, hops: 3 },
    { ...trail, via: ['gateway.example'] },
    { ...trail, via: ['127.0.0.1'] },
    { ...trail, origin: '127.0.0.1' },
    { ...trail, forward: false },
  ]) {
    t.equal(await textOf(await source.open(wanted({ provenance }), never)), 'unknown')
  }
  t.equal(server.requests.length, 0)
  await source.close()
})

t.test('of many peers the same few are asked for one id, and slots are released', async (t) => {
  const servers = []
  for (let n = 0; n < 8; n += 1) servers.push(await peer(t, undefined))
  const source = peersOf(servers, { candidatesMax: 3, concurrentMax: 1 })
  const one = wanted()
  for (let time = 0; time < 5; time += 1) await source.open(one, never)
  const reached = servers.filter(({ requests }) => requests.length > 0)
  t.equal(reached.length, 3)
  t.ok(reached.every(({ requests }) => requests.length === 5))
  await source.close()

  let finish = (): void => undefined
  const slow = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': 4, ...verified }).write('sl')
    finish = () => response.end('ow')
  })
  t.teardown(() => slow.close())
  const single = peersOf([slow], { concurrentMax: 1 })
  const first = await single.open(wanted(), never)
  t.equal(await textOf(await single.open(wanted(), never)), 'busy', 'as many answers as one peer may have')
  finish()
  t.equal(await textOf(first), 'slow')
  t.notOk(isRefusal(await single.open(wanted(), never)), 'the slot came home')
  await single.close()
})

t.test('what failures took of a weight comes back with time, and no more than that', async (t) => {
  let nowMs = 0
  const clock = { ...systemClock, monotonic: () => nowMs }
  const failing = await upstream((_, response) => response.destroy())
  t.teardown(() => failing.close())
  const empty = await peer(t, undefined)
  const peers = peersOf([failing, empty], { weightDelta: 20, rest: { ...rest, failuresMax: 1e9 } }, clock)
  const weight = (): number => peers.weights.get(failing.url) ?? Number.NaN
  for (let turn = 0; turn < 5; turn += 1) await peers.open(wanted(), never)
  t.equal(weight(), 1)
  nowMs += 15 * 60_000
  t.equal(peers.kept()[failing.url], 26, 'half of the way')
  nowMs += 24 * 3_600_000
  t.equal(peers.kept()[failing.url], 50)
  await peers.open(wanted(), never)
  t.equal(Math.round(weight()), 30, 'from where it was')
  await peers.close()
})

t.test(
  'weights are taken over from an earlier process, within their bounds, for peers of the list',
  async (t) => {
    const [one, other, third] = [await peer(t, 'a'), await peer(t, 'b'), await peer(t, 'c')]
    const peers = peersOf([one, other, third])
    const kept = { [one.url]: 90, [other.url]: 101, [third.url]: 'x', 'http://gone.example': 80 }
    for (const wrong of [undefined, null, 3, [], 'x', { __proto__: { [one.url]: 3 } }]) peers.takeOver(wrong)
    peers.takeOver(JSON.parse(JSON.stringify(kept)))
    t.same(peers.kept(), { [one.url]: 90, [other.url]: 50, [third.url]: 50 })
    const changes = peers.changes
    await textOf(await peers.open(wanted(), never))
    t.ok(peers.changes > changes)
    await peers.close()
  },
)
