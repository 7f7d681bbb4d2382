/** Slots of requests are not held by clients that take their time. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { noContent } from '../../src/gateway/relayed-body.js'
import type { Pace, Reply, Request } from '../../src/http/exchange.js'
import { serve } from '../../src/http/listen.js'
import { inSlot } from '../../src/serving/in-slot.js'
import { RequestSlots } from '../../src/serving/request-slots.js'
import { eventually } from '../eventually.js'
import { fc } from '../property.js'
import { HandClock } from './hand-clock.js'
import { ways } from './ways.js'

const max = 64
/** 8 MiB a second by 64. */
const floor = 131_072

/** A request of which the test says how fast its client is. */
class Fake {
  isGivenUp = false
  readonly aborted = false

  constructor(readonly at: Pace | undefined) {}

  get isSlow(): boolean {
    return this.at !== undefined && this.at.bytesPerSecond < floor
  }

  get hasShown(): boolean {
    return this.isSlow && (this.at?.ms ?? 0) >= 1000
  }

  pace(): Pace | undefined {
    return this.at
  }

  giveUp(): void {
    this.isGivenUp = true
  }
}

const party = fc.oneof(
  fc.nat(255).map((n) => `10.${n}.0.1`),
  fc.nat(255).map((n) => `11.1.${n}.1`),
  fc.nat(255).map((n) => `11.2.2.${n}`),
  fc.nat(99).map((n) => `2001:db8:${n}::1`),
)
const pace = fc.option(fc.record({ bytesPerSecond: fc.nat(2 * floor), ms: fc.nat(3000) }), { nil: undefined })

t.test('only those who make others wait have to make room, and never are there more than slots', async () => {
  const step = fc.record({ client: party, pace, leaves: fc.option(fc.nat(200), { nil: undefined }) })
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 300 }), (steps) => {
      const slots = RequestSlots.quarters(max)
      let held: { fake: Fake; client: string; leave: () => void }[] = []
      for (const { client, pace, leaves } of steps) {
        if (leaves !== undefined) for (const gone of held.splice(leaves, 1)) gone.leave()
        const before = held.some(({ fake }) => fake.hasShown)
        const fake = new Fake(pace)
        const leave = slots.take(client, fake)
        const given = held.filter(({ fake }) => fake.isGivenUp)
        // What they give back themselves changes nothing any more.
        for (const one of given) one.leave()
        held = held.filter(({ fake }) => !fake.isGivenUp)
        if (given.length > (typeof leave === 'string' ? 0 : 1) || given.some(({ fake }) => !fake.isSlow))
          return false
        if (leave === 'all' && (before || held.length < max)) return false
        if (typeof leave !== 'string') held.push({ fake, client, leave })
        if (held.length > max || held.filter((one) => one.client === client).length > max / 4) return false
      }
      return true
    }),
    { numRuns: 100 },
  )
})

t.test('the slowest makes room, of those whose share is used up', async (t) => {
  const slots = new RequestSlots(max)
  const slow = { bytesPerSecond: 100, ms: 5000 }
  const ofProvider = Array.from({ length: 48 }, () => new Fake(slow))
  for (const [at, fake] of ofProvider.entries()) slots.take(`10.1.${at}.1`, fake)
  const slower = new Fake({ bytesPerSecond: 1, ms: 5000 })
  t.type(slots.take('10.2.0.1', slower), 'function')
  t.type(slots.take('10.1.200.1', new Fake(slow)), 'function')
  t.equal(ofProvider.filter((one) => one.isGivenUp).length, 1)
  t.notOk(slower.isGivenUp, 'its own provider has not used up its share')
  for (let at = 0; at < 15; at += 1) t.type(slots.take(`10.${100 + at}.0.1`, new Fake(slow)), 'function')
  t.notOk(slower.isGivenUp)
  t.type(slots.take('10.200.0.1', new Fake(slow)), 'function')
  t.ok(slower.isGivenUp, 'all are taken')
})

/** A client that sends nothing. */
class Silent extends Fake {
  readonly #sinceMs: number

  constructor(private readonly clock: HandClock) {
    super(undefined)
    this.#sinceMs = clock.monotonic()
  }

  override pace(): Pace {
    return { bytesPerSecond: 0, ms: this.clock.monotonic() - this.#sinceMs }
  }
}

t.test('those who come again at once when they had to make room leave slots for others', async (t) => {
  const clock = new HandClock()
  const slots = new RequestSlots(max, max >> 2, clock)
  const crowd: (Silent | undefined)[] = Array.from({ length: 200 }, () => undefined)
  const press = (): void => {
    clock.jump(50)
    for (const [at, one] of crowd.entries()) {
      if (one !== undefined && !one.isGivenUp) continue
      const fake = new Silent(clock)
      crowd[at] = typeof slots.take(`10.${at}.0.1`, fake) === 'string' ? undefined : fake
    }
  }
  for (let step = 0; step < 100; step += 1) press()
  for (let newcomer = 0; newcomer < 20; newcomer += 1) {
    const honest = new Silent(clock)
    const leave = slots.take(`198.${newcomer}.100.1`, honest)
    // Its body comes within half a second.
    for (let step = 0; step < 10; step += 1) press()
    t.notOk(typeof leave === 'string' || honest.isGivenUp, `newcomer ${newcomer}`)
    if (typeof leave !== 'string') leave()
  }
})

t.test('who gets no place does not use up the turn of a newcomer', async (t) => {
  const server = serve(
    (request, reply) => void request.body(1000).then(() => reply.end({ status: 200, block: '' }, '')),
    {
      host: '127.0.0.1',
      port: 0,
      stallMs: 600_000,
      requestsMax: 16,
      // The same moment for all that comes.
      clock: new HandClock(),
      clientOf: (request) => request.header('x-client') ?? 'nobody',
      onThrow: (error) => t.fail(String(error)),
    },
  )
  t.teardown(() => server.close(0))
  await server.listening
  const post = async (client: number, body: string): Promise<Socket> => {
    const head = `POST / HTTP/1.1\r\nHost: x\r\nX-Client: 10.${client}.0.1\r\nContent-Length: 2\r\n\r\n${body}`
    const socket = await open(t, server.port, '127.0.0.1', head)
    return socket
  }
  for (let client = 0; client < 16; client += 1) await post(client, 'x')
  t.ok(await eventually('sixteen requests are under way', () => server.openRequests === 16))
  const statusOf = async (socket: Socket): Promise<string> => String(await once(socket, 'data')).slice(9, 12)
  for (let times = 0; times < 5; times += 1) t.equal(await statusOf(await post(3, 'xx')), '503')
  t.equal(await statusOf(await post(99, 'xx')), '200')
})

/** A body that does not fit into the buffers of a connection. */
const answer = Buffer.alloc(24 << 20, 'x')

async function served(slots: RequestSlots, request: Request, reply: Reply): Promise<void> {
  await inSlot(slots, request.remoteAddress, { request, reply, first: '' }, async () => {
    if (request.method === 'GET')
      await reply.stream({ status: 200, block: '' }, [{ bytes: answer }], noContent)
    else reply.end({ status: isRefusal(await request.body(1000)) ? 408 : 200, block: '' })
  })
}

async function open(t: Test, port: number, from: string, head: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(head)
  return socket
}

/** Status and bytes of an answer; 0 where the connection broke. */
function statusesOf(port: number, from: string, method: string): Promise<readonly [number, number]> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, localAddress: from, agent: false, method }, (reply) => {
      let bytes = 0
      reply.on('data', (piece: Buffer) => {
        bytes += piece.length
      })
      reply.on('error', () => resolve([0, bytes]))
      reply.once('end', () => resolve([reply.statusCode ?? 0, bytes]))
    })
    sent.on('error', () => resolve([0, 0]))
    sent.end(method === 'GET' ? undefined : 'body')
  })
}

for (const by of ways) {
  for (const [what, head] of [
    ['send their bodies', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nx'],
    ['take their answers', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ] as const) {
    t.test(`${by}: those who ${what} as slowly as they may keep nobody out`, async (t) => {
      const slots = RequestSlots.quarters(8)
      const server = serve((request, reply) => void served(slots, request, reply), {
        host: '0.0.0.0',
        port: 0,
        // Nothing ends here by itself while the test runs.
        stallMs: 600_000,
        requestsMax: 1000,
        by,
        onThrow: (error) => t.fail(String(error)),
      })
      t.teardown(() => server.close(0))
      await server.listening
      const { port } = server
      await Promise.all(Array.from({ length: 8 }, (_, at) => open(t, port, `127.${10 + at}.0.1`, head)))
      t.ok(await eventually('eight requests are under way', async () => server.openRequests === 8))
      const newcomer = async (): Promise<boolean> => (await statusesOf(port, '127.30.0.1', 'POST'))[0] === 200
      t.ok(
        await eventually('the newcomer is answered', newcomer),
        'as soon as they have shown how slow they are',
      )
      for (let turn = 0; turn < 4; turn += 1) {
        t.same(await statusesOf(port, `127.${40 + turn}.0.1`, 'GET'), [200, answer.length])
        t.equal((await statusesOf(port, `127.${50 + turn}.0.1`, 'POST'))[0], 200)
      }
      t.equal(server.openRequests, 7, 'no more than was needed made room')
    })
  }
}
