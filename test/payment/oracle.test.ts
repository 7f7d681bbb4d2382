import { once } from 'node:events'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { createLog } from '../../src/actor/log.js'
import { isRefusal } from '../../src/format/refusal.js'
import { HttpOracle } from '../../src/payment/http-oracle.js'
import { currencies } from '../../src/payment/rates.js'

type Say = () => unknown

/** Prices as a source says them: AR at so many USD. */
function prices(ar: number): Record<string, Record<string, number>> {
  const every = (usd: number) =>
    Object.fromEntries(currencies.map((code) => [code, code === 'jpy' ? usd * 150 : usd]))
  const ids = ['ar-io-network', 'ethereum', 'solana', 'kyve-network', 'polygon-ecosystem-token', 'usd-coin']
  return { arweave: every(ar), ...Object.fromEntries(ids.map((id) => [id, every(1)])) }
}

async function source(t: Test, say: Say): Promise<string> {
  const server = createServer((request, response) => {
    const isAsked =
      new URL(request.url ?? '', 'http://x').searchParams.get('ids')?.includes('arweave') === true
    const said = isAsked ? say() : undefined
    response.statusCode = said === undefined ? 500 : 200
    response.end(typeof said === 'string' ? said : JSON.stringify(said ?? {}))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const place = server.address()
  return `http://127.0.0.1:${typeof place === 'object' ? place?.port : 0}/simple/price`
}

t.test(
  'the median of several sources; never a price that is absent, zero, no number, old, or has jumped',
  async (t) => {
    let nowMs = 0
    const clock: Clock = { ...systemClock, monotonic: () => nowMs }
    const said: unknown[] = [prices(6), prices(6.5), prices(600)]
    const urls = await Promise.all([0, 1, 2].map((at) => source(t, () => said[at])))
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
      said[2] = wrong
      await oracle.refresh()
      t.equal(await ar(), '6250000000000', 'the other two')
    }
    said[1] = undefined
    await oracle.refresh()
    t.equal(
      await ar(),
      '6250000000000',
      'one of three is not enough, and the last prices are good for a while',
    )
    nowMs = 600_000
    t.equal(await ar(), 'upstream', 'but not for ever')
    said.fill(prices(7))
    t.equal(await ar(), '7000000000000')
    said.fill(prices(70))
    await oracle.refresh()
    t.equal(await ar(), '7000000000000', 'all of them jump: it is not believed at once')
    nowMs += 1_800_000
    t.equal(await ar(), '70000000000000', 'they say so for half an hour')
  },
)
