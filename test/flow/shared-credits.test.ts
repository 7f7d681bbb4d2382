/** Two whole programs, each with uploads and payments, on one PostgreSQL: they share the credits of every wallet. */
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { accountOf } from '../../src/payment/books/wallets.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { random } from '../property.js'
import { addressOf } from '../signed-item.js'
import { type Running, run } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 21))
/** More than is free. */
const itemBytes = 20_000
const itemOf = (number: number): Uint8Array => signItem(signer, {}, Buffer.alloc(itemBytes, number))

const address = addressOf(signer)

const jsonOf = async (url: string): Promise<Record<string, unknown>> =>
  (await (await fetch(url)).json()) as Record<string, unknown>

const wincAt = async ({ urls }: Running): Promise<bigint> =>
  BigInt(String((await jsonOf(`${urls.payment}/v1/account/balance/any?address=${address}`)).winc))

/** Whether the item was taken, by this program or the other one (409). The same again while the answer is 503. */
async function isTaken({ urls }: Running, item: Uint8Array): Promise<boolean> {
  const status = await eventually('an answer other than 503', async () => {
    const answer = await fetch(`${urls.upload}/v1/tx`, { method: 'POST', body: item })
    await answer.arrayBuffer()
    return answer.status === 503 ? undefined : answer.status
  })
  if (![200, 202, 402, 409].includes(status)) throw new Error(`it answers ${status}`)
  return status !== 402
}

t.test(
  'two programs on one database',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    const url = await server.database('credits')
    const folders = t.testdir({ one: {}, two: {} })
    const settings = {
      DEVNET_SEED: 'false',
      UPLOAD_FREE_ITEM_BYTES: '1000',
      UPLOAD_FREE_WALLET_BYTES: '1000',
      SERVICES: 'upload,payment',
      PAYMENT_DATABASE_URL: url,
    }
    const [one, two] = await Promise.all([
      run(t, `${folders}/one`, settings),
      run(t, `${folders}/two`, settings),
    ])
    const session = await jsonOf(`${one.urls.payment}/v1/top-up/checkout-session/${address}/usd/1000`)
    const { url: checkout } = session.paymentSession as { url: string }
    const body = new URLSearchParams({ card: '4242424242424242' })
    await fetch(checkout, { method: 'POST', body, redirect: 'manual' })
    const bought = await wincAt(one)
    t.equal(await wincAt(two), bought, 'paid at one, there at the other')
    t.ok(await isTaken(two, itemOf(1)))
    const left = await eventually('credits are spent', async () => {
      const winc = await wincAt(one)
      return winc < bought ? winc : undefined
    })
    const price = bought - left

    // Enough for nine items, and nearly for a tenth.
    const ledger = await PostgresLedger.open({ url, clock: systemClock })
    t.teardown(() => ledger.close())
    const rest = 10n * price - 1n
    await ledger.commit({
      transfers: [
        {
          id: 'correction:test',
          kind: 'posted',
          debit: accountOf(address),
          credit: 'operator:corrections',
          amount: left - rest,
          reason: 'correction',
          reference: 'test',
        },
      ],
    })
    const items = Array.from({ length: 15 }, (_, at) => itemOf(10 + at))
    const taken = new Set<number>()
    const posts = items.flatMap((item, at) => {
      // Some come to both programs, at once.
      const places = at % 3 === 0 ? [one, two] : [random() < 0.5 ? one : two]
      return places.map(async (place) => {
        if (await isTaken(place, item)) taken.add(at)
      })
    })
    await Promise.all(posts)
    t.equal(taken.size, 9)
    for (const program of [one, two]) {
      t.equal(await isTaken(program, itemOf(200)), false, 'nothing is left for another one')
      await eventually('the price and no more is left', async () => (await wincAt(program)) === price - 1n)
    }

    await two.kill()
    const again = await run(t, `${folders}/two`, settings)
    t.equal(await wincAt(again), price - 1n)
    t.equal(await isTaken(again, itemOf(201)), false)
    t.strictSame((await ledger.check()).faults, [])
  },
)
