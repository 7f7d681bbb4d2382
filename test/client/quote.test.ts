import t from 'tap'
import { SluiceClient } from '../../src/client/client.js'
import { quoteUploads } from '../../src/client/quote.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import { random } from '../property.js'
import { serving } from './rig.js'

const itemMaxBytes = 1000

/** A service whose items cost a share of their bytes and an amount each, and that gives small ones away. */
interface Left {
  left: number | null
  range?: number | undefined
  overhead?: number | undefined
}

async function client(t: Parameters<typeof serving>[0], state: Left) {
  const { url, requests } = await serving(t, ({ path }) => {
    if (path === '/v1/info') return { json: { freeUploadLimitBytes: itemMaxBytes } }
    if (path.startsWith('/v1/account/free'))
      return {
        json: {
          bytesRemaining: state.left,
          rangeBytesRemaining: state.range ?? null,
          ...(state.overhead === undefined ? {} : { itemOverheadBytes: state.overhead }),
        },
      }
    const [, bytes] = /^\/v1\/price\/bytes\/(\d+)$/.exec(path) ?? []
    if (bytes !== undefined) return { json: { winc: String(priceOf(Number(bytes))) } }
    return path === '/v1/rates' ? { json: { winc: '1000', fiat: { usd: 2 } } } : undefined
  })
  const signer = await signerOfEthereum('01'.repeat(32))
  const retry = { tries: 1 }
  return {
    requests,
    client: new SluiceClient({ uploadUrl: url, paymentUrl: url, gatewayUrls: [url], signer, retry }),
  }
}

function priceOf(bytes: number): bigint {
  return BigInt(Math.ceil(bytes / 7) + 20)
}

/** What a service charges that takes items in this order. `left`: null for a wallet that pays for nothing, of any size. */
function charged(
  itemBytes: readonly number[],
  { left, range = Number.POSITIVE_INFINITY, overhead = 0 }: Left,
): bigint {
  if (left === null) return 0n
  let [rest, rangeRest] = [left, range]
  let winc = 0n
  for (const bytes of itemBytes) {
    const isFree = bytes <= itemMaxBytes && bytes <= rest && bytes + overhead <= rangeRest
    if (isFree) [rest, rangeRest] = [rest - bytes, rangeRest - bytes - overhead]
    else winc += priceOf(bytes)
  }
  return winc
}

function shuffled<One>(list: readonly One[]): One[] {
  return list
    .map((one) => [random(), one] as const)
    .sort(([one], [other]) => one - other)
    .map(([, one]) => one)
}

t.test('whatever the order of items, no more is charged than was said', async (t) => {
  const state: Left = { left: 0 }
  const given = await client(t, state)
  for (let round = 0; round < 60; round++) {
    const itemBytes = Array.from(
      { length: 1 + Math.floor(random() * 12) },
      () => 1 + Math.floor(random() * 1500),
    )
    state.left = [0, null, Math.floor(random() * 6000)][round % 3] ?? null
    const isCounted = state.left !== null && round % 2 === 1
    state.range = isCounted ? Math.floor(random() * 9000) : undefined
    state.overhead = isCounted ? Math.floor(random() * 600) : undefined
    const { winc } = await quoteUploads(given.client, itemBytes)
    for (let order = 0; order < 20; order++) {
      const really = charged(shuffled(itemBytes), state)
      if (really > winc) t.fail(`${itemBytes} with ${JSON.stringify(state)}: ${really} of ${winc}`)
    }
    const total = itemBytes.reduce((sum, bytes) => sum + priceOf(bytes), 0n)
    if (state.left === 0) t.equal(winc, total, 'nothing is free: the sum of the prices')
    if (state.left === null) t.equal(winc, charged(itemBytes, { left: null }))
  }
})

t.test('free items are free, and the address range counts as well as the wallet', async (t) => {
  const state: Left = { left: 5000 }
  const given = await client(t, state)
  t.strictSame(await quoteUploads(given.client, [1000, 1000]), { freeItems: 2, winc: 0n, usd: undefined })
  const some = await quoteUploads(given.client, [1000, 1001])
  t.strictSame(some, { freeItems: 1, winc: priceOf(1001), usd: (Number(priceOf(1001)) / 1000) * 2 })
  Object.assign(state, { range: 10_000, overhead: 500 })
  t.equal((await quoteUploads(given.client, [1000, 1000], 4)).winc, 0n)
  state.range = 4999
  t.not((await quoteUploads(given.client, [1000, 1000], 4)).winc, 0n, 'what is in bundles counts, too')
  state.overhead = undefined
  state.range = 0
  t.equal((await quoteUploads(given.client, [1000])).winc, priceOf(1000))
})

t.test('many different sizes are priced by few questions, none too low', async (t) => {
  const given = await client(t, { left: 0 })
  const itemBytes = Array.from({ length: 5000 }, (_, at) => 1001 + at * 37)
  const { winc } = await quoteUploads(given.client, itemBytes)
  const total = itemBytes.reduce((sum, bytes) => sum + priceOf(bytes), 0n)
  t.ok(winc >= total && winc <= (total * 106n) / 100n, `${winc} for ${total}`)
  t.ok(given.requests.length < 150, `${given.requests.length} questions`)
})
