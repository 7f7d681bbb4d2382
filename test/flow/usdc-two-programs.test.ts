/** Uploads that are paid for in USDC where the payment service is another program: there, gone, hanging, and there again. */
import t, { type Test } from 'tap'
import { newAccount, payee } from '../admission/scene.js'
import { payment } from '../admission/shop.js'
import { eventually } from '../eventually.js'
import { suspend } from '../suspend.js'
import { type Running, run } from './running.js'
import { type Answered, buyer, itemOf, offerIn, post, type Scene, signed } from './usdc-scene.js'

/** The same again while the answer is 503: an upload service on a busy machine has not waited for the other one. */
const posted = (...given: Parameters<typeof post>): Promise<Answered> =>
  eventually('an answer other than 503', async () => {
    const answer = await post(...given)
    return answer.status === 503 ? undefined : answer
  })

interface Two extends Pick<Scene, 'facilitator' | 'payer'> {
  readonly uploads: Running
  readonly url: string
  readonly bank: Running
  /** The payment service again, after it was killed: where it was, with what it has. */
  again(): Promise<Running>
  /** Headers that pay what the answer offers. */
  paying(offered: Answered): Promise<Record<string, string>>
}

async function two(t: Test): Promise<Two> {
  const { facilitator, payer, settings } = await buyer(t)
  const folders = t.testdir({ bank: {}, uploads: {} })
  const start = (port: string): Promise<Running> =>
    run(t, `${folders}/bank`, { ...settings, SERVICES: 'payment', PAYMENT_PORT: port })
  const bank = await start('0')
  const { payment: bankUrl = '' } = bank.urls
  const uploads = await run(t, `${folders}/uploads`, {
    DEVNET_SEED: 'false',
    UPLOAD_FREE_ITEM_BYTES: '2000',
    PRIVATE_ROUTE_SECRET: settings.PRIVATE_ROUTE_SECRET ?? '',
    SERVICES: 'upload',
    PAYMENT_SERVICE_URL: bankUrl,
  })
  return {
    facilitator,
    payer,
    uploads,
    bank,
    url: uploads.urls.upload ?? '',
    again: () => start(new URL(bankUrl).port),
    paying: (offered) => payment(payer, 1, { to: payee, value: offerIn(offered).maxAmountRequired }),
  }
}

const credits = async (bank: Running, address: string): Promise<bigint> => {
  const balanceAnswer = await fetch(`${bank.urls.payment}/v1/account/balance/ethereum?address=${address}`)
  return balanceAnswer.status === 404 ? 0n : BigInt(((await balanceAnswer.json()) as { winc: string }).winc)
}

t.test('signed items, bytes, and uploads in parts are sold for a payment service elsewhere', async (t) => {
  const { facilitator, url, bank, paying } = await two(t)
  const signedUrl = `${url}/v1/x402/upload/signed`
  const item = itemOf('far away')
  const offered = await posted(signedUrl, item)
  t.equal(offered.status, 402)
  t.equal(offerIn(offered).resource, signedUrl, 'the address of the upload service')
  const headers = await paying(offered)
  const answers = await Promise.all([1, 2, 3].map(() => posted(signedUrl, item, headers)))
  const [first] = answers as [Answered]
  t.strictSame(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  for (const other of answers) t.strictSame(signed(other), signed(first), 'one receipt')
  t.match(await (await fetch(`${url}/tx/${String(first.json.id)}/status`)).json(), { status: 'CONFIRMED' })
  const other = await posted(signedUrl, itemOf('something else'), headers)
  t.match([other.status, other.json.error], [402, 'payment_already_used'])

  const rawUrl = `${url}/x402/upload/unsigned`
  const body = Buffer.alloc(100_000, 'raw')
  const raw = await posted(rawUrl, body, await paying(await posted(rawUrl, body)))
  t.equal(raw.status, 200)
  t.match(raw.json.x402Payment, { network: 'base-sepolia' })

  const large = itemOf('in parts', 6_000_000)
  const { address } = newAccount()
  const begin = async (more: Record<string, string> = {}): Promise<Answered> => {
    const query = `chunkSize=5242880&totalBytes=12000000&address=${address}&signatureType=3`
    const answer = await fetch(`${url}/v1/chunks/base-usdc/-1/-1?${query}`, { headers: more })
    return { ...answer, status: answer.status, headers: answer.headers, json: (await answer.json()) as never }
  }
  const begun = await begin(await paying(await begin()))
  t.equal(begun.status, 200)
  const parts = `${url}/v1/chunks/base-usdc/${String(begun.json.id)}`
  t.equal((await post(`${parts}/0`, large.subarray(0, 5_242_880))).status, 200)
  t.equal((await post(`${parts}/5242880`, large.subarray(5_242_880))).status, 200)
  t.equal((await post(`${parts}/-1`, new Uint8Array(0))).status, 200)
  await eventually('the payment is credited', async () => (await credits(bank, address)) > 0n)

  const price = await fetch(`${url}/price/x402/data-item/usdc-base-sepolia/${item.length}`)
  t.match(await price.json(), { usdcAmount: offerIn(offered).maxAmountRequired })
  t.equal(facilitator.count('settle'), 3)
})

t.test('the payment service goes while the money moves, and comes back', async (t) => {
  const { facilitator, url, bank, again, paying } = await two(t)
  facilitator.remembers = true
  const signedUrl = `${url}/x402/upload/signed`
  // One client comes again, the other one does not.
  const items = [itemOf('comes again'), itemOf('never comes')] as const
  const offers = await Promise.all(items.map((item) => posted(signedUrl, item)))
  const headers = await Promise.all(offers.map(paying))
  facilitator.afterSettle = () => facilitator.used.size <= items.length
  const waiting = items.map((item, at) => post(signedUrl, item, headers[at]))
  await eventually('every payment is executed', () => facilitator.used.size === items.length)
  await bank.kill()
  facilitator.afterSettle = undefined
  for (const answer of await Promise.all(waiting)) {
    t.equal(answer.status, 503)
    t.equal(answer.json.error, 'settlement_pending')
  }
  const away = itemOf('nobody can be asked')
  t.equal((await post(signedUrl, away)).status, 503)
  t.equal((await post(`${url}/tx`, away)).status, 503, 'credits neither')
  t.equal((await post(`${url}/tx`, itemOf('free', 1000))).status, 200, 'what is free needs nobody')
  t.equal((await post(signedUrl, items[0], headers[0])).status, 503)

  const back = await again()
  const receipt = await posted(signedUrl, items[0], headers[0])
  t.equal(receipt.status, 200)
  t.match(receipt.json, { mUSDCPaid: offerIn(offers[0] as Answered).maxAmountRequired })
  await eventually(
    'the second item is accepted',
    async () => (await post(`${url}/tx`, items[1])).status === 202,
  )
  t.equal(facilitator.used.size, items.length)
  const total = offers.reduce((sum, offer) => sum + BigInt(offerIn(offer).maxAmountRequired), 0n)
  t.equal(facilitator.balances.get(payee.toLowerCase()), total, 'once each')
  t.ok((await fetch(`${back.urls.payment}/v1/info`)).ok)
})

t.test('a payment service that hangs is waited for less than a second', async (t) => {
  const { facilitator, url, bank, paying } = await two(t)
  const signedUrl = `${url}/x402/upload/signed`
  const item = itemOf('patience')
  const offered = await posted(signedUrl, item)
  await suspend(bank.process)
  t.equal((await post(signedUrl, item)).status, 503)
  t.equal((await post(`${url}/tx`, item)).status, 503)
  t.equal((await fetch(`${url}/price/x402/data-item/usdc-base-sepolia/1000`)).status, 503)
  bank.process.kill('SIGCONT')
  const sold = await posted(signedUrl, item, await paying(offered))
  t.equal(sold.status, 200)
  t.equal(facilitator.count('settle'), 1)
})
