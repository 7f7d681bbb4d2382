/**
 * Several upload services with one payment service: what one payment in USDC has paid for at one, no other one accepts. They have
 * the same host name, and no `CLUSTER_NODE`.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { payee } from '../admission/scene.js'
import { payment } from '../admission/shop.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { type Running, run } from './running.js'
import { type Answered, buyer, itemOf, offerIn, post, type Scene } from './usdc-scene.js'

const raw = { 'content-type': 'application/octet-stream' }

/** Bytes that the service signs, paid for in USDC, at one machine and at another. */
class RawBuyer {
  readonly bytes = randomBytes(20_000)

  constructor(private readonly payer: Scene['payer']) {}

  /** A new payment of what the machine offers. */
  async payment({ urls }: Running, identifier?: string): Promise<Record<string, string>> {
    const value = await offered(rawUrl(urls), this.bytes, raw)
    const headers = await payment(this.payer, 2, { to: payee, value })
    if (identifier === undefined) return { ...raw, ...headers }
    const read = JSON.parse(Buffer.from(headers['PAYMENT-SIGNATURE'] ?? '', 'base64').toString()) as object
    const extensions = { 'payment-identifier': { info: { required: false, id: identifier } } }
    const named = Buffer.from(JSON.stringify({ ...read, extensions })).toString('base64')
    return { ...raw, 'PAYMENT-SIGNATURE': named }
  }

  post(
    { urls }: Running,
    headers: Record<string, string>,
    bytes: Uint8Array = this.bytes,
  ): Promise<Answered> {
    return post(rawUrl(urls), bytes, headers)
  }
}

/** Units that are wanted for the bytes. A machine that has just started may not know its price. */
async function offered(
  url: string,
  bytes: Uint8Array,
  headers: Record<string, string> = {},
): Promise<string> {
  const answer = await eventually('an offer', async () => {
    const answered = await post(url, bytes, headers)
    return answered.status === 503 ? undefined : answered
  })
  return offerIn(answer).maxAmountRequired
}

/** The same headers with a signature of nobody: names of payments are public on the chain. */
function unsigned(headers: Record<string, string>): Record<string, string> {
  const signature = `0x${'ab'.repeat(64)}1b`
  const forged = Object.entries(headers).map(([name, value]) => {
    if (!/^(x-payment|payment-signature)$/i.test(name)) return [name, value]
    const { payload, ...read } = JSON.parse(Buffer.from(value, 'base64').toString()) as { payload: object }
    const text = JSON.stringify({ ...read, payload: { ...payload, signature } })
    return [name, Buffer.from(text).toString('base64')]
  })
  return Object.fromEntries(forged) as Record<string, string>
}

const rawUrl = (urls: Running['urls']): string => `${urls.upload}/v1/x402/upload/unsigned`
const newIdentifier = (): string => randomBytes(12).toString('hex')

t.test('a payment that stands on the chain buys nothing at another machine', async (t) => {
  const { facilitator, payer, settings } = await buyer(t)
  const folders = t.testdir({ bank: {}, one: {}, two: {} })
  const bank = await run(t, `${folders}/bank`, { ...settings, SERVICES: 'payment' })
  const machine = (name: string): Promise<Running> =>
    run(t, `${folders}/${name}`, {
      DEVNET_SEED: 'false',
      UPLOAD_FREE_ITEM_BYTES: '2000',
      PRIVATE_ROUTE_SECRET: settings.PRIVATE_ROUTE_SECRET ?? '',
      SERVICES: 'upload',
      PAYMENT_SERVICE_URL: bank.urls.payment ?? '',
    })
  const [one, two] = [await machine('one'), await machine('two')]
  const sold = ({ urls }: Running): string => `${urls.upload}/v1/x402/upload/signed`
  const item = itemOf('bought once')
  const value = await offered(sold(one), item)
  const headers = await payment(payer, 1, { to: payee, value })
  t.equal((await post(sold(one), item, headers)).status, 200)
  t.match(
    await post(sold(two), item, unsigned(headers)),
    { status: 402 },
    'whoever knows the name of the payment',
  )
  t.match(await post(sold(two), item, headers), { status: 409 }, 'the same request')
  t.match(await post(`${two.urls.upload}/v1/tx`, item), { status: 409 }, 'and the bytes alone')
  const again = await payment(payer, 1, { to: payee, value })
  t.equal((await post(sold(two), item, again)).status, 409)
  t.equal(facilitator.count('settle'), 1)
  t.match((await post(sold(one), item, headers)).status, 200, 'where it was bought it is answered as before')

  const buying = new RawBuyer(payer)
  const name = newIdentifier()
  const first = await buying.payment(one, name)
  const begun = facilitator.count('settle')
  t.equal((await buying.post(one, first)).status, 200)
  t.match(await buying.post(two, unsigned(first)), { status: 402 }, 'who has not signed it learns nothing')
  t.match(await buying.post(two, first), { status: 409 }, 'bytes without a signature: the same request')
  t.equal((await buying.post(two, await buying.payment(two, name))).status, 409, 'the same identifier')
  const other = await buying.post(two, await buying.payment(two, name), randomBytes(20_000))
  t.match(other, { status: 409, json: { error: 'payment_identifier_conflict' } })
  t.equal(facilitator.count('settle'), begun + 1)
})

t.test(
  'raw bytes that were bought at one machine of a cluster are not sold again at another',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    const { facilitator, payer, settings } = await buyer(t)
    const folders = t.testdir({ one: {}, two: {} })
    const machine = (name: string): Promise<Running> =>
      run(t, `${folders}/${name}`, {
        ...settings,
        SERVICES: 'upload,payment',
        CLUSTER_DATABASE_URL: server.url,
        PAYMENT_DATABASE_URL: server.url,
        CLUSTER_NODE: name,
      })
    const [one, two] = await Promise.all([machine('one'), machine('two')])
    const buying = new RawBuyer(payer)
    const name = newIdentifier()
    const paid = await buying.payment(one, name)
    const sold = await buying.post(one, paid)
    t.equal(sold.status, 200)
    for (const [what, headers] of Object.entries({ paid, named: await buying.payment(two, name) })) {
      const again = await buying.post(two, headers)
      t.equal(again.status, 200, what)
      t.strictSame(facts(again), facts(sold), what)
    }
    t.equal(facilitator.count('settle'), 1)

    const [next, both] = [new RawBuyer(payer), newIdentifier()]
    const payments = await Promise.all([next.payment(one, both), next.payment(two, both)])
    const post = (): Promise<Answered[]> =>
      Promise.all([one, two].map((machine, at) => next.post(machine, payments[at] ?? {})))
    const answers = await eventually('both are answered', async () => {
      const answered = await post()
      return answered.every(({ status }) => status === 200) ? answered : undefined
    })
    t.equal(answers[0]?.json.id, answers[1]?.json.id, 'at the same moment')
    t.equal(facilitator.count('settle'), 2)
  },
)

/** Of a receipt: what another machine states of it, too. Each signs for itself. */
function facts({ json }: Answered): object {
  const { id, owner, timestamp, deadlineHeight, winc, x402PaymentTxId } = json
  return { id, owner, timestamp, deadlineHeight, winc, x402PaymentTxId }
}
