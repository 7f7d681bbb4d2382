import { once } from 'node:events'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { createLog } from '../../../src/actor/log.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { HttpOracle, type OracleMemory } from '../../../src/payment/prices/http-oracle.js'
import { Prices } from '../../../src/payment/prices/prices.js'
import { currencies, type Rates } from '../../../src/payment/prices/rates.js'

type Say = () => unknown

/** Prices as a source says them: AR at so many USD. */
function prices(ar: number): Record<string, Record<string, number>> {
  const every = (usd: number) =>
    Object.fromEntries(currencies.map((code) => [code, code === 'jpy' ? usd * 150 : usd]))
  const ids = ['ar-io-network', 'ethereum', 'solana', 'kyve-network', 'polygon-ecosystem-token', 'usd-coin']
  return { arweave: every(ar), ...Object.fromEntries(ids.map((id) => [id, every(1)])) }
}

async function source(t: Test, say: Say, path = '/simple/price'): Promise<string> {
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://x')
    const isWanted = /arweave|^AR,/.test(searchParams.get('ids') ?? searchParams.get('fsyms') ?? '')
    const body = isWanted ? say() : undefined
    response.statusCode = body === undefined ? 500 : 200
    response.end(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const place = server.address()
  return `http://127.0.0.1:${typeof place === 'object' ? place?.port : 0}${path}`
}

t.test('a price from before a machine was suspended counts no more', async (t) => {
  const times = { now: 1e12, monotonic: 5 }
  const clock: Clock = { ...systemClock, now: () => times.now, monotonic: () => times.monotonic }
  let winston = 10n
  const oracle = { rates: async () => refuse('upstream', 'upstream', 'none'), about: { source: '' } }
  const options = { itemMicroUsd: 0, keptMs: 600_000 }
  const network = async (): Promise<bigint> => {
    winston += 1n
    return winston
  }
  const paid = new Prices(network, oracle as never, clock, options)
  for (const [passed, expected] of [
    [1000, 11n],
    [700_000, 12n],
    [1000, 12n],
  ] as const) {
    times.now += passed
    await paid.ofItem(1)
    t.equal(winston, expected)
  }
  const url = await source(t, () => prices(6))
  const limits = { urls: [url, url], askEveryMs: 3600_000, staleMs: 600_000, limitMs: 60_000 }
  const read = new HttpOracle(limits, clock, createLog('silent', 'test'))
  t.teardown(() => read.close())
  await read.refresh()
  times.now += 700_000
  t.match(read.about, { ageMs: 700_000 })
})

t.test(
  'the median of several sources; never a price that is absent, zero, no number, old, or has jumped',
  async (t) => {
    let nowMs = 0
    const clock: Clock = { ...systemClock, monotonic: () => nowMs }
    const answers: unknown[] = [prices(6), prices(6.5), prices(600)]
    const urls = await Promise.all([0, 1, 2].map((at) => source(t, () => answers[at])))
    const options = { urls, askEveryMs: 3600_000, staleMs: 600_000, limitMs: 60_000 }
    const oracle = new HttpOracle(options, clock, createLog('silent', 'test'))
    t.teardown(() => oracle.close())
    const ar = async (): Promise<string> => {
      const rates = await oracle.rates()
      return isRefusal(rates) ? rates.refused : String(rates.usd.ar)
    }
    t.equal(await ar(), '6500000000000', 'one of three is 100 times too high')
    const rates = await oracle.rates()
    t.equal(isRefusal(rates) ? 0n : rates.perUsd.jpy, 150n * 10n ** 12n)
    for (const wrong of [prices(0), prices(Number.NaN), prices(-1), {}, [], 'x', undefined]) {
      answers[2] = wrong
      await oracle.refresh()
      t.equal(await ar(), '6250000000000', 'the other two')
    }
    answers[1] = undefined
    await oracle.refresh()
    t.equal(
      await ar(),
      '6250000000000',
      'one of three is not enough, and the last prices are good for a while',
    )
    nowMs = 600_000
    t.equal(await ar(), 'upstream', 'but not for ever')
    answers.fill(prices(7))
    t.equal(await ar(), 'upstream', 'sources that failed are left alone for a while')
    nowMs += 60_000
    t.equal(await ar(), '7000000000000')
    answers.fill(prices(70))
    await oracle.refresh()
    t.equal(await ar(), '7000000000000', 'all of them jump: it is not believed at once')
    nowMs += 1_800_000
    t.equal(await ar(), '70000000000000', 'they say so for half an hour')
    answers.fill(prices(100))
    await oracle.refresh()
    t.equal(await ar(), '87500000000000', 'one answer moves a price by a quarter at most')
    await oracle.refresh()
    t.equal(await ar(), '100000000000000')
  },
)

const quiet = createLog('silent', 'test')

t.test('the first price of one source is believed where it can be right, and nothing else', async (t) => {
  const wrong: [string, unknown][] = [
    ['absent', undefined],
    ['empty', {}],
    ['zero', prices(0)],
    ['no number', prices(Number.NaN)],
    ['infinite', prices(Number.POSITIVE_INFINITY)],
    ['a hundred times', prices(625)],
    ['a hundredth', prices(0.0625)],
    ['USDC is 100 USD', { ...prices(6.25), 'usd-coin': { usd: 100 } }],
  ]
  for (const [name, answer] of wrong) {
    const url = await source(t, () => answer)
    const oracle = new HttpOracle(optionsOf([url]), systemClock, quiet)
    t.ok(isRefusal(await oracle.rates()), name)
    oracle.close()
  }
  const url = await source(t, () => likely(20))
  const oracle = new HttpOracle(optionsOf([url]), systemClock, quiet)
  t.equal(await arOf(oracle), '20000000000000', 'three times as much has happened')
  oracle.close()
})

t.test('several that say so are believed at once; the last start is remembered', async (t) => {
  let nowMs = 0
  const clock: Clock = { ...systemClock, monotonic: () => nowMs }
  let kept: Rates | undefined
  const memory: OracleMemory = {
    read: async () => kept,
    write: async (rates) => {
      kept = rates
    },
  }
  const high = likely(625)
  const compared = {
    ...Object.fromEntries(
      ['ARIO', 'ETH', 'SOL', 'KYVE', 'POL', 'USDC'].map((name) => [name, upper(likely(1), name)]),
    ),
    AR: upper(high, 'AR'),
  }
  const urls = [await source(t, () => high), await source(t, () => compared, '/data/pricemulti')]
  const first = new HttpOracle(optionsOf(urls), clock, quiet, memory)
  t.equal(await arOf(first), '625000000000000', 'two that know nothing of each other')
  first.close()
  t.equal(kept?.usd.ar, 625_000_000_000_000n)

  let price = 6.25
  const again = await source(t, () => likely(price))
  const second = new HttpOracle(optionsOf([again]), clock, quiet, memory)
  t.equal(await arOf(second), 'upstream', 'a hundredth of what it was at the last start')
  price = 600
  nowMs += 3600_000
  t.equal(await arOf(second), '600000000000000', 'near what it was')
  second.close()
})

t.test('of two sources, the one that is near what was true is right', async (t) => {
  const clock: Clock = { ...systemClock, monotonic: () => 0 }
  const answers: unknown[] = [likely(6), likely(600)]
  const urls = await Promise.all([0, 1].map((at) => source(t, () => answers[at])))
  const oracle = new HttpOracle(optionsOf(urls), clock, quiet)
  t.teardown(() => oracle.close())
  t.equal(await arOf(oracle), 'upstream', 'nobody knows which')
  answers[1] = likely(6)
  await oracle.refresh()
  t.equal(await arOf(oracle), '6000000000000')
  answers[1] = likely(600)
  answers[0] = likely(6.6)
  await oracle.refresh()
  t.equal(await arOf(oracle), '6600000000000')
  answers[0] = undefined
  await oracle.refresh()
  t.equal(await arOf(oracle), '6600000000000', 'the other alone is not believed')
  answers[1] = likely(7)
  await oracle.refresh()
  t.equal(await arOf(oracle), '7000000000000', 'where it is near, it is')
})

function optionsOf(urls: readonly string[]): ConstructorParameters<typeof HttpOracle>[0] {
  return { urls, askEveryMs: 3600_000, staleMs: 600_000, limitMs: 60_000 }
}

async function arOf(oracle: HttpOracle): Promise<string> {
  const rates = await oracle.rates()
  return isRefusal(rates) ? rates.refused : String(rates.usd.ar)
}

/** Prices as they may be, but for AR. */
function likely(ar: number): Record<string, Record<string, number>> {
  const perUsd: Record<string, number> = { aud: 1.5, brl: 5.5, cad: 1.4, eur: 0.9, gbp: 0.75 }
  const others: Record<string, number> = { hkd: 7.8, inr: 85, jpy: 150, sgd: 1.3, usd: 1 }
  const every = (usd: number) =>
    Object.fromEntries(Object.entries({ ...perUsd, ...others }).map(([code, rate]) => [code, usd * rate]))
  const usd = {
    'ar-io-network': 0.02,
    ethereum: 2500,
    solana: 150,
    'kyve-network': 0.03,
    'polygon-ecosystem-token': 0.4,
    'usd-coin': 1,
  }
  return {
    arweave: every(ar),
    ...Object.fromEntries(Object.entries(usd).map(([id, one]) => [id, every(one)])),
  }
}

const names: Readonly<Record<string, string>> = {
  AR: 'arweave',
  ARIO: 'ar-io-network',
  ETH: 'ethereum',
  SOL: 'solana',
  KYVE: 'kyve-network',
  POL: 'polygon-ecosystem-token',
  USDC: 'usd-coin',
}

function upper(from: Record<string, Record<string, number>>, symbol: string): Record<string, number> {
  const found = from[names[symbol] ?? ''] ?? {}
  return Object.fromEntries(Object.entries(found).map(([code, value]) => [code.toUpperCase(), value]))
}
