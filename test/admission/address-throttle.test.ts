import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { AddressThrottle } from '../../src/admission/address-throttle.js'
import { type Denial, isDenial, type Payments } from '../../src/admission/admission-port.js'
import { Clients } from '../../src/admission/clients.js'
import { Gate } from '../../src/admission/gate.js'
import type { Request } from '../../src/http/exchange.js'
import { serve } from '../../src/http/listen.js'
import { HandClock as ServerClock } from '../http/hand-clock.js'
import { ways } from '../http/ways.js'
import { fc } from '../property.js'
import { HandClock, memoryHouse } from './house.js'

t.test('an address that is refused now and then is never held', async (t) => {
  const clock = new HandClock()
  const throttle = new AddressThrottle(clock)
  for (let page = 0; page < 20; page += 1) {
    for (let picture = 0; picture < 50; picture += 1) t.equal(throttle.refused('a'), 0)
    clock.ms += 1000
  }
})

t.test(
  'an address that is refused again and again is held for longer each time, up to a bound',
  async (t) => {
    const throttle = new AddressThrottle(new HandClock())
    const holds = Array.from({ length: 2000 }, () => throttle.refused('a'))
    t.strictSame(holds.slice(0, 50), Array(50).fill(0))
    t.strictSame(holds.slice(50, 53), [10, 20, 30])
    t.equal(Math.max(...holds), 10_000)
    t.equal(throttle.refused('b'), 0, 'and nobody else is')
  },
)

t.test('refusals are forgotten', async (t) => {
  const clock = new HandClock()
  const throttle = new AddressThrottle(clock)
  for (let at = 0; at < 5000; at += 1) throttle.refused('a')
  clock.ms += 21_000
  t.equal(throttle.refused('a'), 0)
})

t.test(
  'however many connections a flood has, refusals come about as fast as the count shrinks',
  async (t) => {
    for (const connections of [1, 32, 400]) {
      const clock = new HandClock()
      const throttle = new AddressThrottle(clock)
      const due: number[] = Array(connections).fill(clock.ms)
      let refused = 0
      for (let ms = 0; ms < 20_000; ms += 1) {
        clock.ms += 1
        // Half of the time they are getting under way.
        for (let at = 0; at < connections; at += 1) {
          if ((due[at] ?? 0) > clock.ms) continue
          due[at] = clock.ms + throttle.refused('a')
          if (ms > 10_000) refused += 1
        }
      }
      t.ok(refused < 10 * 75, `${connections} connections: ${refused} in 10 s`)
    }
  },
)

const clientOptions = { trustedProxies: ['10.0.0.1'], exempt: ['192.0.2.9'], ipv6PrefixBits: 64 }

async function gateOf(
  t: { teardown(act: () => Promise<void>): void },
  refillPerSecond: number,
  payments?: Payments,
) {
  const house = await memoryHouse({
    ip: { capacity: 10, refillPerSecond },
    resource: { capacity: 1_000_000, refillPerSecond: 1 },
  })
  t.teardown(() => house.close())
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const clients = new Clients(clientOptions, house.keeper.secret)
  const rest = payments === undefined ? {} : { payments }
  const throttle = new AddressThrottle(house.clock)
  const gate = new Gate({ ...house, clients, exemptNames: [], meters, throttle, ...rest })
  const requestOf = (remoteAddress: string, lines: Record<string, string> = {}): Request => {
    const header = (name: string): string | undefined => lines[name]
    const body = (): never => {
      throw new Error('none')
    }
    return {
      method: 'GET',
      path: '/x',
      query: '',
      remoteAddress,
      header,
      headersUnder: body,
      body,
      stream: body,
    }
  }
  const ask = async (address: string, bytes = 5000, lines: Record<string, string> = {}) => {
    const outcome = await gate.admit({ request: requestOf(address, lines), bytes, contentType: 'text/plain' })
    return isDenial(outcome) ? outcome : undefined
  }
  /** What the last of so many refusals says. */
  const flood = async (count: number, ...args: Parameters<typeof ask>): Promise<Denial> => {
    let last: Denial | undefined
    for (let at = 0; at < count; at += 1) last = (await ask(...args)) ?? last
    if (last === undefined) throw new Error('nothing was refused')
    return last
  }
  return { gate, ask, flood, house, requestOf, meters }
}

t.test('requests without tokens are held too, at a rate far above usual clients', async (t) => {
  const { gate, requestOf, house } = await gateOf(t, 1)
  const flood = (count: number, address: string, lines: Record<string, string> = {}): number => {
    let last = 0
    for (let at = 0; at < count; at += 1) last = gate.freeDelayMs(requestOf(address, lines))
    return last
  }
  t.equal(flood(1000, '203.0.113.1'), 0)
  t.equal(flood(1, '203.0.113.1'), 1)
  t.equal(flood(5000, '203.0.113.1'), 1000)
  t.equal(flood(1, '203.0.113.2'), 0, 'another address')
  t.equal(flood(5000, '192.0.2.9'), 0, 'exempt')
  t.equal(flood(5000, '10.0.0.1', { 'x-forwarded-for': '203.0.113.1' }), 0, 'through a proxy')
  house.clock.ms += 2000
  t.equal(flood(900, '203.0.113.1'), 0, 'forgotten')
  for (let second = 0; second < 10; second += 1) {
    house.clock.ms += 1000
    t.equal(flood(950, '203.0.113.3'), 0, 'busy, for long')
  }
})

t.test('as many addresses as may be are remembered, and no more', async (t) => {
  const throttle = new AddressThrottle(new HandClock())
  for (let at = 0; at < 60; at += 1) throttle.refused('first')
  t.equal(throttle.refused('first'), 110)
  for (let at = 0; at < 4096; at += 1) throttle.refused(`${at}`)
  t.equal(throttle.refused('first'), 0)
})

function retryOf({ lines }: Denial): number | undefined {
  const found = /Retry-After: (\d+)/.exec(lines)
  return found === null ? undefined : Number(found[1])
}

t.test('a connection is held only where it is the client`s own', async (t) => {
  const { ask, flood, meters } = await gateOf(t, 1)
  t.ok(((await flood(100, '203.0.113.1')).delayMs ?? 0) > 0)
  t.equal(meters.total('rate_limit_holds_total'), 48, 'two were served, fifty refused without a hold')
  t.equal((await flood(100, '10.0.0.1', 5000, { 'x-forwarded-for': '203.0.113.2' })).delayMs, 0)
  t.equal((await flood(100, '10.0.0.1')).delayMs, 0, 'nor where the proxy says nothing')
  t.ok(((await flood(100, '203.0.113.3', 5000, { 'x-forwarded-for': '203.0.113.4' })).delayMs ?? 0) > 0)
  for (let at = 0; at < 100; at += 1) t.equal(await ask('192.0.2.9'), undefined, 'exempt')
  t.equal((await flood(4, '203.0.113.5')).delayMs, 0, 'and not at once')
})

t.test('addresses of one IPv6 prefix are one client', async (t) => {
  const { flood } = await gateOf(t, 1)
  await flood(100, '2001:db8::1')
  t.ok(((await flood(1, '2001:db8::2')).delayMs ?? 0) > 0)
  t.equal((await flood(4, '2001:db8:0:1::1')).delayMs, 0)
})

t.test('without Retry-After, or where a payment may follow, a hold is short', async (t) => {
  const none = await gateOf(t, 0)
  const denied = await none.flood(500, '203.0.113.1')
  t.equal(retryOf(denied), undefined)
  t.equal(denied.delayMs, 1000)
  const demand = { status: 402, contentType: 'a', lines: '', body: '', reason: '' } as const
  const payments = { demand: () => demand, pay: () => undefined, topUp: () => undefined }
  const sold = await gateOf(t, 1, payments)
  t.equal((await sold.flood(10, '203.0.113.1')).delayMs, undefined)
  t.equal((await sold.flood(500, '203.0.113.1')).delayMs, 1000)
})

t.test('for a client without tokens that may pay, the network is asked only so often', async (t) => {
  const demand = { status: 402, contentType: 'a', lines: '', body: '', reason: '' } as const
  const payments = { demand: () => demand, pay: () => undefined, topUp: () => undefined }
  const { gate, ask, house, requestOf } = await gateOf(t, 0, payments)
  const prechecks = async (count: number, address: string): Promise<(Denial | boolean)[]> => {
    const all: (Denial | boolean)[] = []
    for (let at = 0; at < count; at += 1) all.push(await gate.takeFirst(requestOf(address)))
    return all
  }
  t.strictSame(await prechecks(10, '203.0.113.1'), Array(10).fill(true), 'while there are tokens they count')
  const all = await prechecks(30, '203.0.113.1')
  t.strictSame(all.slice(0, 20), Array(20).fill(false))
  for (const denial of all.slice(20)) t.match(denial, { status: 429, lines: /Retry-After: 1\r\n/ })
  house.clock.ms += 3000
  t.strictSame(await prechecks(3, '203.0.113.1'), [false, false, false], 'one a second is')
  t.match(await prechecks(1, '203.0.113.1'), [{ status: 429 }])
  t.equal((await ask('203.0.113.1'))?.status, 402, 'what is here has its price')
  t.strictSame(await prechecks(10, '203.0.113.2'), Array(10).fill(true), 'others have their own')
})

t.test('no hold is longer than the Retry-After that came with it', async (t) => {
  const { ask, house } = await gateOf(t, 3)
  const step = fc.record({
    waitMs: fc.nat(3000),
    count: fc.integer({ min: 1, max: 300 }),
    bytes: fc.nat(9000),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      for (const { waitMs, count, bytes } of steps) {
        house.clock.ms += waitMs
        for (let at = 0; at < count; at += 1) {
          const denial = await ask('203.0.113.1', bytes)
          if (denial === undefined) continue
          const retry = retryOf(denial)
          if (retry === undefined || (denial.delayMs ?? 0) > retry * 1000) return false
        }
      }
      return true
    }),
    { numRuns: 50 },
  )
})

/** Writes a request for each name, and waits for as many answers; their statuses. */
async function statuses(socket: Socket, count: number): Promise<number[]> {
  let text = ''
  const found = (): number[] => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
  for (let at = 0; at < count; at += 1) socket.write('GET /x HTTP/1.1\r\nHost: x\r\n\r\n')
  while (found().length < count) {
    const [piece] = (await once(socket, 'data')) as [Buffer]
    text += piece.toString('latin1')
  }
  return found()
}

for (const by of ways) {
  t.test(`at the ${by} a flood waits, and whoever keeps to Retry-After does not`, async (t) => {
    const { gate, house } = await gateOf(t, 1000)
    const clock = new ServerClock()
    const server = serve(
      (request, reply) => {
        const outcome = gate.admit({ request, bytes: 5000, contentType: 'text/plain' })
        if (outcome instanceof Promise) throw new Error('memory answers at once')
        if (!isDenial(outcome)) reply.end({ status: 200, block: '' })
        else {
          reply.delayNext(outcome.delayMs ?? 0)
          reply.end({ status: outcome.status, block: outcome.lines.slice(2) })
        }
      },
      {
        host: '127.0.0.1',
        port: 0,
        stallMs: 5000,
        requestsMax: 9,
        clock,
        by,
        onThrow: (error) => t.fail(String(error)),
      },
    )
    t.teardown(() => server.close(0))
    await server.listening
    const from = async (localAddress: string): Promise<Socket> => {
      const socket = connect({ port: server.port, host: '127.0.0.1', localAddress })
      t.teardown(() => socket.destroy())
      await once(socket, 'connect')
      return socket
    }
    const [flood, patient, other] = [
      await from('127.0.0.2'),
      await from('127.0.0.2'),
      await from('127.0.0.3'),
    ]
    t.strictSame((await statuses(flood, 53)).slice(2), Array(51).fill(429))
    const more = statuses(flood, 1)
    t.strictSame(await statuses(patient, 1), [429], 'the same address on a connection of its own is answered')
    t.strictSame(await statuses(other, 2), [200, 200], 'another address is served')
    house.advance?.(1)
    clock.turn(1000)
    t.strictSame(await statuses(patient, 1), [200], 'after Retry-After it is served at once')
    t.strictSame(await more, [200])
  })
}
