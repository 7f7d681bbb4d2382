import { equal, ok, throws } from 'node:assert/strict'
import t from 'tap'
import { Kinds } from '../../src/admission/cashier-messages.js'
import { Offers, resourceOf } from '../../src/admission/payment-offer.js'
import { inUsdc, Price, tokensMax } from '../../src/admission/token-price.js'
import { refuse } from '../../src/format/refusal.js'
import type { Request } from '../../src/http/exchange.js'
import { fc } from '../property.js'

const numRuns = 2000

/** A plain decimal number with some digits, above zero. */
const decimal = (places: number) =>
  fc
    .tuple(fc.bigInt({ min: 1n, max: 10n ** 12n }), fc.integer({ min: 0, max: places }))
    .map(([digits, scale]) => {
      const text = digits.toString().padStart(scale + 1, '0')
      return scale === 0 ? text : `${text.slice(0, -scale)}.${text.slice(-scale)}`
    })

/** The number as a fraction over 10^30: another way to the same value. */
function scaled(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole) * 10n ** 30n + BigInt(fraction.padEnd(30, '0'))
}

const sizes = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 40 }),
  fc.constantFrom(0, 1, 1023, 1024, 1025, Number.MAX_SAFE_INTEGER),
)

const tariffs = fc
  .record({
    perByte: decimal(30),
    minimum: decimal(6),
    more: decimal(6),
    multiplier: fc.integer({ min: 1, max: 1000 }),
  })
  .map(({ perByte, minimum, more, multiplier }) => {
    const maximum = scaled(more) > scaled(minimum) ? more : minimum
    return { perByte, minimum, maximum, multiplier }
  })

t.test(
  'a price is the exact one rounded up, between minimum and maximum, and never less for more',
  async (t) => {
    fc.assert(
      fc.property(tariffs, sizes, sizes, (tariff, one, other) => {
        const price = new Price(tariff)
        const units = price.units(one)
        const least = scaled(tariff.minimum) / 10n ** 24n
        const most = scaled(tariff.maximum) / 10n ** 24n
        ok(units >= least && units <= most)
        // In units of 10^-30 USDC: one unit is 10^24 of them.
        const exact = BigInt(one) * scaled(tariff.perByte)
        if (units > least && units < most)
          ok(units * 10n ** 24n >= exact && (units - 1n) * 10n ** 24n < exact)
        equal(units, price.units(one), 'the same at challenge and retry')
        if (one <= other) ok(units <= price.units(other))
      }),
      { numRuns },
    )
    t.pass('held')
  },
)

t.test(
  'a payment always buys the answer that it was made for, and what it is worth times the multiplier',
  async (t) => {
    fc.assert(
      fc.property(tariffs, sizes, (tariff, bytes) => {
        const price = new Price(tariff)
        const units = price.units(bytes)
        const tokens = price.tokens(units, bytes)
        ok(Number.isSafeInteger(tokens) && tokens >= 1 && tokens <= tokensMax)
        ok(tokens >= Math.min(Math.ceil(bytes / 1024), tokensMax))
        const worth = BigInt(tokens) * 1024n * scaled(tariff.perByte)
        if (tokens < tokensMax) ok(worth >= units * 10n ** 24n * BigInt(tariff.multiplier))
      }),
      { numRuns },
    )
    t.pass('held')
  },
)

t.test('known prices', async (t) => {
  const price = new Price({ perByte: '0.0000000001', minimum: '0.001', maximum: '1.00', multiplier: 10 })
  const cases: [number, bigint][] = [
    [0, 1000n],
    [10_000_000, 1000n],
    [10_000_001, 1001n],
    [10_010_000, 1001n],
    [2 ** 30, 107_375n],
    [10_000_000_000, 1_000_000n],
    [Number.MAX_SAFE_INTEGER, 1_000_000n],
  ]
  for (const [bytes, units] of cases) t.equal(price.units(bytes), units, `${bytes} bytes`)
  t.equal(price.tokens(1000n, 0), 97_660)
  for (const [units, text] of [
    [1000n, '0.001'],
    [1n, '0.000001'],
    [1_000_000n, '1.00'],
    [1_500_000n, '1.50'],
    [123_456_789n, '123.456789'],
  ] as const) {
    t.equal(inUsdc(units), text)
  }
})

t.test('invalid tariffs are refused', async (t) => {
  const good = { perByte: '0.1', minimum: '0.1', maximum: '1', multiplier: 1 }
  const bad = [{ perByte: '0' }, { perByte: '-1' }, { perByte: 'NaN' }, { perByte: '1e-10' }, { perByte: '' }]
  const worse = [
    { minimum: '2' },
    { minimum: '0' },
    { multiplier: 0 },
    { multiplier: 1.5 },
    { multiplier: Number.NaN },
  ]
  for (const change of [...bad, ...worse]) throws(() => new Price({ ...good, ...change }), RangeError)
  t.ok(new Price(good))
})

function requestTo(path: string, query: string, host: string | undefined): Request {
  return {
    method: 'GET',
    path,
    query,
    remoteAddress: '127.0.0.1',
    header: (name) => (name === 'host' ? host : undefined),
    headersUnder: () => [],
    body: async () => refuse('malformed', 'client', 'no body'),
    stream: () => ({ pause: () => undefined, resume: () => undefined }),
  }
}

t.test('an offer names an absolute address, whatever host and path a client sends', async (t) => {
  const cases: [string, string, string | undefined, string][] = [
    ['/a', 'b=c', 'example.org', 'http://example.org/a?b=c'],
    ['/a', '', 'example.org:8080', 'http://example.org:8080/a'],
    ['/a', '', '[::1]:3000', 'http://[::1]:3000/a'],
    ['/a', '', 'user@evil.example', 'http://localhost/a'],
    ['/a', '', 'evil.example/x', 'http://localhost/a'],
    ['/a', '', undefined, 'http://localhost/a'],
    ['/"><script>', 'x=</script>', 'a.b', 'http://a.b/%22%3E%3Cscript%3E?x=%3C/script%3E'],
    ['/a', `q=${'x'.repeat(5000)}`, 'a.b', 'http://a.b/a'],
    [`/${'x'.repeat(5000)}`, '', 'a.b', 'http://a.b/'],
  ]
  for (const [path, query, host, wanted] of cases) t.equal(resourceOf(requestTo(path, query, host)), wanted)
  const hosts = fc.oneof(fc.string(), fc.webAuthority())
  fc.assert(
    fc.property(fc.webPath(), fc.string(), hosts, (path, query, host) => {
      const url = resourceOf(requestTo(`/${path}`, query, host), 'https')
      ok(url.startsWith('https://') && url.length <= 1024 && /^[\x21-\x7e]+$/.test(url))
    }),
    { numRuns: 300 },
  )
})

t.test('of the content type only a plain media type gets into an offer', async (t) => {
  const tariff = { perByte: '0.0000000001', minimum: '0.001', maximum: '1.00', multiplier: 10 }
  const offers = new Offers(
    { network: 'base', wallet: `0x${'1'.repeat(40)}`, tariff, facilitatorUrl: 'http://f' },
    new Kinds(),
  )
  const typeOf = (contentType: string): string =>
    offers.quote({ request: requestTo('/a', '', 'b'), bytes: 1, contentType }).mimeType
  t.equal(typeOf('text/html; charset=utf-8'), 'text/html')
  for (const evil of [
    '</script><script>',
    'text/html"',
    'a/b\r\nX: y',
    '',
    "text/$'",
    `a/${'b'.repeat(99)}`,
  ]) {
    t.equal(typeOf(evil), 'application/octet-stream')
  }
})

t.test('only what the facilitator settles is offered', async (t) => {
  const kinds = new Kinds()
  const tariff = { perByte: '0.0000000001', minimum: '0.001', maximum: '1.00', multiplier: 10 }
  const offers = new Offers(
    { network: 'base', wallet: `0x${'1'.repeat(40)}`, tariff, facilitatorUrl: 'http://f' },
    kinds,
  )
  const quote = offers.quote({ request: requestTo('/a', '', 'b'), bytes: 1, contentType: 'a/b' })
  const shown = (): [number, boolean] => [
    (offers.body(quote, {}) as { accepts: unknown[] }).accepts.length,
    offers.lines(quote, '') !== '',
  ]
  t.same([kinds.known, ...shown()], [false, 1, true])
  kinds.set([1])
  t.same(shown(), [1, false])
  kinds.set([2])
  t.same(shown(), [0, true])
  kinds.set([])
  t.same([kinds.known, ...shown()], [true, 0, false])
})
