/** A bundle pays for all that lies in it, at every level: a stranger who posts a part of it alone has nobody pay again. */
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { tagOf } from '../../src/format/tag.js'
import { nativeAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { postgresAbsent, postgresFor } from '../engines/two-machines.js'
import { headerOf } from '../signed-item.js'
import { type Running, run } from './running.js'
import { upstream } from './upstream.js'

const signer = ed25519Signer(Buffer.alloc(32, 62))
const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]

const itemOf = (bytes: number, fill: number): Uint8Array => signItem(signer, {}, Buffer.alloc(bytes, fill))
const bundleOf = (...items: readonly Uint8Array[]): Uint8Array =>
  signItem(signer, { tags }, encodeBundle(items.map((bytes) => ({ id: headerOf(bytes).id, bytes }))))

function wallet(): string {
  const { signatureType, owner } = headerOf(itemOf(1, 0))
  return nativeAddress(signatureType, owner)
}

async function post({ urls }: Running, item: Uint8Array, address: string): Promise<number> {
  const headers = { 'x-forwarded-for': address }
  const answer = await fetch(`${urls.upload}/v1/tx`, { method: 'POST', body: item, headers })
  await answer.arrayBuffer()
  return answer.status
}

async function topUp({ urls }: Running): Promise<void> {
  const session = await fetch(`${urls.payment}/v1/top-up/checkout-session/${wallet()}/usd/1000`)
  const { paymentSession } = (await session.json()) as { paymentSession: { url: string } }
  const body = new URLSearchParams({ card: '4242424242424242' })
  await fetch(paymentSession.url, { method: 'POST', body, redirect: 'manual' })
}

async function balance({ urls }: Running): Promise<string> {
  const answer = await fetch(`${urls.payment}/v1/account/balance?address=${wallet()}`)
  return ((await answer.json()) as { winc: string }).winc
}

/** No gateway of the network has anything. */
const network = await upstream(t, (_, __, response) => response.writeHead(404).end())
const settings = {
  TRUSTED_PROXIES: '127.0.0.0/8',
  SERVICES: 'upload,payment',
  TRUSTED_GATEWAYS_URLS: JSON.stringify({ [network.url]: 1 }),
}
const [home, away] = ['192.0.2.1', '203.0.113.6']

t.test('the items of a bundle in a bundle, before its block', async (t) => {
  const program = await run(t, t.testdir(), settings)
  await topUp(program)
  const [item, beside] = [itemOf(300_000, 1), itemOf(300_000, 2)]
  const inner = bundleOf(item, itemOf(10, 3))
  t.equal(await post(program, bundleOf(inner, beside), home), 200)
  const paid = await balance(program)
  for (const one of [item, inner, beside]) t.match(String(await post(program, one, away)), /^(202|409)$/)
  t.equal(await post(program, item, away), 409)
  t.equal(await balance(program), paid, 'nobody was charged')
  t.equal(await post(program, itemOf(300_000, 4), away), 200, 'another item is')
  t.not(await balance(program), paid)
})

t.test('two machines: what one has accepted, the other one does not charge', postgresAbsent, async (t) => {
  const { url } = await postgresFor(t)
  const folders = t.testdir({ one: {}, two: {} })
  const machine = (name: string): Promise<Running> =>
    run(t, `${folders}/${name}`, {
      ...settings,
      CLUSTER_DATABASE_URL: url,
      PAYMENT_DATABASE_URL: url,
      CLUSTER_NODE: name,
      UPLOAD_FREE_RANGE_BYTES: '100000',
    })
  const [one, two] = await Promise.all([machine('one'), machine('two')])
  await topUp(one)
  const [free, paid, inner] = [itemOf(60_000, 11), itemOf(300_000, 12), itemOf(300_000, 13)]
  const bundle = bundleOf(bundleOf(inner, itemOf(10, 14)))
  for (const item of [free, paid, bundle]) t.equal(await post(one, item, home), 200)
  t.equal(await post(two, itemOf(60_000, 15), away), 200, 'the free bytes of the other range are used up')
  const before = await balance(two)
  for (const item of [free, paid, bundle])
    t.equal(await post(two, item, away), 202, 'the receipt of the other one')
  t.equal(await post(two, inner, away), 409)
  t.equal(await balance(two), before, 'nobody was charged')
  for (let fill = 20; fill < 25; fill += 1) {
    const item = itemOf(300_000, fill)
    const statuses = await Promise.all([post(one, item, home), post(two, item, away)])
    t.equal(statuses.filter((status) => status === 200).length, 1, `in the same moment: ${statuses}`)
    const again = await Promise.all([post(one, item, home), post(two, item, away)])
    t.strictSame(again, [202, 202])
  }
  t.equal(await post(two, itemOf(300_000, 16), away), 200, 'another item is')
  t.not(await balance(two), before)
})
