import t from 'tap'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { AddressThrottle } from '../../src/admission/address-throttle.js'
import {
  type Charge,
  type Denial,
  type Grant,
  isDenial,
  type Paid,
  type Payments,
} from '../../src/admission/admission-port.js'
import { Gate } from '../../src/admission/gate.js'
import type { Request } from '../../src/http/exchange.js'
import { clientAt, named } from '../conformance/buckets.js'
import { memoryHouse } from './house.js'

function requestTo(path = '/x', remoteAddress = '203.0.113.1'): Request {
  return {
    ...named(path),
    query: '',
    remoteAddress,
    headersUnder: () => [],
    body: () => Promise.reject(new Error('none')),
    stream: () => ({ pause: () => undefined, resume: () => undefined }),
  }
}

const charge = (bytes: number, more: Partial<Charge> = {}): Charge => {
  return { request: requestTo(), bytes, contentType: 'text/plain', ...more }
}

async function granted(outcome: Grant | Denial | Promise<Grant | Denial>): Promise<Grant> {
  const found = await outcome
  if (isDenial(found)) throw new Error(found.reason)
  return found
}

async function gateOf(t: { teardown(act: () => Promise<void>): void }, tokens: number, payments?: Payments) {
  const house = await memoryHouse({
    ip: { capacity: tokens, refillPerSecond: 1 },
    resource: { capacity: 50, refillPerSecond: 1 },
  })
  t.teardown(() => house.close())
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const gate = new Gate({
    ...house,
    throttle: new AddressThrottle(house.clock),
    exemptNames: ['Free', 'sub_free'],
    meters,
    ...(payments === undefined ? {} : { payments }),
  })
  const left = async (): Promise<number> => {
    const held = await house.buckets.ofClient(clientAt(house.clients, '203.0.113.1'))
    return held === undefined ? tokens : held.tokens + held.paidTokens
  }
  return { gate, house, meters, left }
}

t.test(
  'an answer costs a token for each KiB begun, one at least, and what is not sent comes back',
  async (t) => {
    const { gate, left } = await gateOf(t, 100)
    const rows: [number, number, number][] = [
      [0, 0, 1],
      [1, 1, 1],
      [1024, 1024, 1],
      [1025, 1025, 2],
      [40_960, 40_960, 40],
      [40_960, 2048, 2],
      [40_960, 2049, 3],
      [40_960, 0, 1],
    ]
    let before = 100
    for (const [bytes, sent, cost] of rows) {
      const grant = await granted(gate.admit(charge(bytes, { request: requestTo(`/${bytes}-${sent}`) })))
      grant.returnUnsent(sent)
      t.equal(before - (await left()), cost, `${sent} of ${bytes} bytes`)
      before = await left()
    }
  },
)

t.test('a precheck takes the first token of the answer, and a denied answer takes no other', async (t) => {
  const { gate, left, meters } = await gateOf(t, 10)
  t.equal(await gate.takeFirst(requestTo()), true)
  t.equal(await left(), 9)
  const grant = await granted(gate.admit(charge(4096, { firstTokenTaken: true })))
  t.equal(await left(), 6, 'four in all')
  grant.returnUnsent(0)
  t.equal(await left(), 9, 'the token of the precheck is not given back')
  const head = await granted(gate.admit(charge(0, { firstTokenTaken: true })))
  head.returnUnsent(0)
  t.equal(await left(), 9)
  const denial = await gate.admit(charge(10_240))
  t.match(denial, { status: 429, reason: 'IP rate limit exceeded' })
  t.match((denial as Denial).lines, /Retry-After: 1\r\nCache-Control: no-store/)
  t.equal(await left(), 9)
  for (let at = 0; at < 9; at += 1) await gate.takeFirst(requestTo(`/unknown-${at}`))
  t.match(await gate.takeFirst(requestTo()), { status: 429 }, 'floods of ids that nobody has are limited')
  t.match(meters.text(), 'rate_limit_exceeded_total{limit_type="ip",domain="data"} 2')
  t.match(meters.text(), 'rate_limit_bytes_blocked_total{domain="data"} 10240')
})

t.test('what is taken from the buckets of clients and of resources is counted', async (t) => {
  const { gate, meters } = await gateOf(t, 100)
  await granted(gate.admit(charge(4096)))
  await granted(gate.admit(charge(1024, { domain: 'chunk' })))
  for (const bucket of ['ip', 'resource']) {
    const of = (domain: string, type = 'regular'): number =>
      meters.value('rate_limit_tokens_consumed_total', { bucket_type: bucket, token_type: type, domain })
    t.same([of('data'), of('chunk'), of('index'), of('data', 'paid')], [4, 1, 0, 0], bucket)
  }
})

t.test('an answer larger than the whole allowance has no time at which it would do', async (t) => {
  const { gate } = await gateOf(t, 10)
  const denial = (await gate.admit(charge(20_480))) as Denial
  t.notMatch(denial.lines, 'Retry-After')
  t.match(JSON.parse(denial.body as string), { error: 'Too Many Requests', detail: /ranges/ })
})

t.test('the resource bucket denies too, says so, and the client is not charged', async (t) => {
  const { gate, left } = await gateOf(t, 100)
  await granted(gate.admit(charge(51_200)))
  // Half of its own tokens are there.
  await granted(gate.admit(charge(1024)))
  t.equal(await left(), 49)
  const denial = await gate.admit(charge(1))
  t.match(denial, { status: 429, reason: 'Resource rate limit exceeded' })
  t.match((denial as Denial).lines, 'Retry-After: 1\r\n')
  t.equal(await left(), 49)
  await granted(gate.admit(charge(1, { request: requestTo('/other') })))
})

t.test('exempt names pass', async (t) => {
  const { gate, left } = await gateOf(t, 1)
  for (const name of ['free', 'sub_free']) await granted(gate.admit(charge(2 ** 30, { name })))
  t.equal(await gate.takeFirst(requestTo(), 'free'), false)
  t.equal(await left(), 1)
  t.ok(isDenial(await gate.admit(charge(2 ** 30, { name: 'other_free' }))))
})

t.test(
  'a payment is used only when free tokens do not suffice, fills the bucket, and passes the resource by',
  async (t) => {
    const log: string[] = []
    const denial: Denial = {
      status: 402,
      contentType: 'application/json',
      lines: '',
      body: '{}',
      reason: 'unpaid',
    }
    let carries = true
    let credit: (client: string) => Promise<unknown> = () => Promise.resolve()
    const payments: Payments = {
      demand: (_, fault) => {
        log.push(fault === undefined ? 'demand' : `demand: ${fault.error}`)
        return denial
      },
      pay(_, client) {
        if (!carries) return undefined
        log.push(`pay for ${client}`)
        const paid: Paid = {
          tokens: 100,
          payment: 'one',
          amount: '1000',
          multiplier: 10,
          lines: '\r\nX-Payment-Response: r',
        }
        return credit(client).then(() => paid)
      },
      topUp: () => undefined,
    }
    const { gate, house, left } = await gateOf(t, 60, payments)
    credit = (client) => house.buckets.credit(client, 'one', 100)
    ;(await granted(gate.admit(charge(50 * 1024)))).returnUnsent(50 * 1024)
    t.same(log, [], 'it carries a payment, and is not asked for it')
    const paid = await granted(gate.admit(charge(20 * 1024)))
    t.equal(paid.lines, '\r\nX-Payment-Response: r')
    t.same(log, ['pay for 203.0.113.1'])
    t.equal(await left(), 90, 'free ones first')
    carries = false
    const again = await granted(gate.admit(charge(10 * 1024)))
    t.equal(again.lines, '', 'who paid has tokens left, whatever the resource has')
    t.same(await gate.takeFirst(requestTo()), true)
    const denied = await gate.admit(charge(900 * 1024))
    t.match(denied, { status: 402 })
    t.same(log, ['pay for 203.0.113.1', 'demand'])
  },
)

t.test('nothing is sold while it is not known what the client has paid for', async (t) => {
  const log: string[] = []
  const denial: Denial = { status: 402, contentType: '', lines: '', body: '{}', reason: 'unpaid' }
  const paid: Paid = {
    tokens: 9,
    payment: 'one',
    amount: '1',
    multiplier: 1,
    lines: '\r\nX-Payment-Response: r',
  }
  const payments: Payments = {
    demand() {
      log.push('demand')
      return denial
    },
    async pay() {
      log.push('pay')
      return paid
    },
    topUp: () => undefined,
  }
  const { gate, house } = await gateOf(t, 10, payments)
  const takeShared = house.buckets.take.bind(house.buckets)
  const standIn = { short: 'ip', retrySeconds: 5, isPaidUnknown: true } as const
  let standsIn = true
  house.buckets.take = (client, name, tokens, from) =>
    standsIn || from === 'payer' ? standIn : takeShared(client, name, tokens, from)
  const refused = await gate.admit(charge(900 * 1024))
  t.match(refused, { status: 429, lines: /Retry-After: 5/ })
  t.notMatch((refused as Denial).body, /larger than the whole allowance/)
  t.same(log, [])
  standsIn = false
  const unserved = await gate.admit(charge(900 * 1024))
  t.match(
    unserved,
    { status: 503, lines: /X-Payment-Response: r/ },
    'the payment counts, and buys the next answer',
  )
  t.same(log, ['pay'])
})
