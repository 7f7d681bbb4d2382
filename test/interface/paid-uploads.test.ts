import t, { type Test } from 'tap'
import { nativeAddress, normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, ethereumSigner, type ItemSigner, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { run } from '../flow/running.js'
import { headerOf } from '../signed-item.js'

const secret = 'a-secret-of-two-services'
const settings = { DEVNET_SEED: 'false', UPLOAD_FREE_ITEM_BYTES: '1000', UPLOAD_FREE_WALLET_BYTES: '1500' }

/** A wallet, by both of its addresses. */
interface Wallet {
  readonly signer: ItemSigner
  readonly native: string
  readonly alias: string
}

function walletOf(signer: ItemSigner): Wallet {
  const header = headerOf(signItem(signer, {}, Buffer.from('who')))
  const { signatureType, owner } = header
  return { signer, native: nativeAddress(signatureType, owner), alias: normalizedAddress(owner) }
}

interface Places {
  readonly upload: string
  readonly payment: string
}

async function jsonOf(url: string): Promise<Record<string, unknown>> {
  return (await (await fetch(url)).json()) as Record<string, unknown>
}

/** Ten dollars by a card that pays. */
async function pay({ payment }: Places, { native }: Wallet): Promise<bigint> {
  const session = await jsonOf(`${payment}/v1/top-up/checkout-session/${native}/usd/1000`)
  const { url } = session.paymentSession as { url: string }
  const body = new URLSearchParams({ card: '4242424242424242' })
  await fetch(url, { method: 'POST', body, redirect: 'manual' })
  return balanceOf({ payment, upload: '' }, { native })
}

async function balanceOf({ payment }: Places, { native }: Pick<Wallet, 'native'>): Promise<bigint> {
  return BigInt(String((await jsonOf(`${payment}/v1/account/balance/any?address=${native}`)).winc))
}

function post({ upload }: Places, item: Uint8Array): Promise<Response> {
  return fetch(`${upload}/v1/tx`, { method: 'POST', body: item })
}

/** An item is paid from credits, exactly once, however often and by whatever way it comes. */
async function paysOnce(t: Test, places: Places, wallet: Wallet): Promise<void> {
  const item = signItem(wallet.signer, {}, Buffer.alloc(300_000, 'more than is free'))
  const unknown = await post(places, item)
  t.equal(unknown.status, 402)
  t.equal(unknown.headers.get('x-free-tier-exhausted'), 'true')
  const before = await pay(places, wallet)
  t.ok(before > 0n)
  const answers = await Promise.all([post(places, item), post(places, item), post(places, item)])
  t.same(answers.map(({ status }) => status).sort(), [200, 202, 202])
  const receipts = (await Promise.all(answers.map((answer) => answer.json()))) as { winc: string }[]
  const cost = BigInt(receipts[0]?.winc ?? 0)
  t.ok(cost > 0n)
  for (const receipt of receipts) t.match(receipt, { winc: String(cost) })
  t.equal((await post(places, item)).status, 202)
  const parts = `${places.upload}/v1/chunks/any`
  const { id } = await jsonOf(`${parts}/-1/-1`)
  await fetch(`${parts}/${String(id)}/0`, { method: 'POST', body: item })
  const finalized = await fetch(`${parts}/${String(id)}/-1`, { method: 'POST' })
  t.match(await finalized.json(), { winc: String(cost) })
  await eventually('the upload is charged', async () => (await balanceOf(places, wallet)) === before - cost)
}

const program = await run(t, t.testdir(), settings)
const { urls } = program

t.test('items beyond what is free are paid from credits, once', async (t) => {
  const places = { upload: urls.upload ?? '', payment: urls.payment ?? '' }
  await paysOnce(t, places, walletOf(ed25519Signer(Buffer.alloc(32, 8))))
  await paysOnce(t, places, walletOf(ethereumSigner(Buffer.alloc(32, 9))))
})

t.test('the payment service tells how much is left for free, by either address of a wallet', async (t) => {
  const wallet = walletOf(ethereumSigner(Buffer.alloc(32, 10)))
  const left = async (address: string): Promise<unknown> =>
    (await jsonOf(`${urls.payment}/v1/account/free?address=${address}`)).bytesRemaining
  for (const address of [wallet.native, wallet.alias, '']) t.equal(await left(address), 1500)
  const item = signItem(wallet.signer, {}, Buffer.from('free'))
  t.equal((await post({ upload: urls.upload ?? '', payment: '' }, item)).status, 200)
  for (const address of [wallet.native, wallet.native.toLowerCase(), wallet.alias])
    t.equal(await left(address), 1500 - item.length)
  t.equal(await left(''), 1500)
})

t.test('an upload service alone asks the payment service that it is told of', async (t) => {
  const folders = t.testdir({ payment: {}, upload: {} })
  const common = { ...settings, PRIVATE_ROUTE_SECRET: secret }
  const paid = await run(t, `${folders}/payment`, { ...common, SERVICES: 'gateway,payment' })
  const payment = paid.urls.payment ?? ''
  const taken = await run(t, `${folders}/upload`, {
    ...common,
    SERVICES: 'upload',
    PAYMENT_SERVICE_URL: payment,
  })
  t.equal(taken.urls.payment, undefined)
  const places = { upload: taken.urls.upload ?? '', payment }
  await paysOnce(t, places, walletOf(ed25519Signer(Buffer.alloc(32, 11))))
  const free = await post(places, signItem(ed25519Signer(Buffer.alloc(32, 12)), {}, Buffer.from('free')))
  t.match(await free.json(), { winc: '0', dataCaches: [], fastFinalityIndexes: [] }, 'nobody serves it yet')
  await paid.kill()
  const item = signItem(ed25519Signer(Buffer.alloc(32, 11)), {}, Buffer.alloc(5000, 'nobody is asked'))
  const away = await post(places, item)
  t.equal(away.status, 503)
  t.match(await away.text(), /Payment Service is unreachable$/)
  for (const path of ['/price/1000', `/account/balance/any?address=${'a'.repeat(43)}`]) {
    const offerAnswer = await fetch(places.upload + path)
    t.equal(offerAnswer.status, 503, path)
    t.equal(await offerAnswer.text(), 'Payment Service is unreachable', 'and nothing of where it is')
  }
})

t.test('the program ends when it is told to', async (t) => {
  t.equal(await program.stop(), 0)
})
