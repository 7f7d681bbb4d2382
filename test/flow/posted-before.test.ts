/** An item that shares credits names no service: it counts where it is posted first, and nowhere after that. */
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { type Tag, tagOf } from '../../src/format/tag.js'
import { nativeAddress, normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, type ItemSigner, signItem } from '../../src/proof/sign.js'
import { headerOf } from '../signed-item.js'
import { run } from './running.js'
import { upstream } from './upstream.js'

let status = 404
const one = await upstream(t, (_, __, response) => response.writeHead(status).end())
/** Has no item of this test. */
const other = await upstream(t, (_, __, response) => response.writeHead(404).end())
const program = await run(t, t.testdir(), {
  DEVNET_SEED: 'false',
  TRUSTED_PROXIES: '127.0.0.0/8',
  SERVICES: 'upload,payment',
  TRUSTED_GATEWAYS_URLS: JSON.stringify({ [one.url]: 1, [other.url]: 2 }),
})
const { upload = '', payment = '' } = program.urls

const [giver, stranger, newcomer, poor] = [31, 32, 33, 34].map((byte) =>
  ed25519Signer(Buffer.alloc(32, byte)),
)
const friend = 'A'.repeat(43)

function addressOf(signer: ItemSigner | undefined): string {
  const { signatureType, owner } = headerOf(itemBy(signer, []))
  return nativeAddress(signatureType, owner)
}

function itemBy(signer: ItemSigner | undefined, tags: readonly Tag[]): Uint8Array {
  if (signer === undefined) throw new Error('no signer')
  return signItem(signer, { tags: [...tags] }, Buffer.from('shared'))
}

const approval = (winc: number): Uint8Array =>
  itemBy(giver, [tagOf('x-approve-payment', friend), tagOf('x-amount', String(winc))])

/** From an address of its owner's, if no other is given. */
const post = (item: Uint8Array, address = '192.0.2.1'): Promise<Response> =>
  fetch(`${upload}/v1/tx`, { method: 'POST', body: item, headers: { 'x-forwarded-for': address } })

async function approvals(payer = giver): Promise<readonly { approvedWincAmount: string }[]> {
  const answer = await fetch(
    `${payment}/v1/account/approvals?payingAddress=${addressOf(payer)}&approvedAddress=${friend}`,
  )
  if ((await answer.clone().text()).startsWith('No valid approvals')) return []
  const { approvals = [] } = (await answer.json()) as { approvals?: { approvedWincAmount: string }[] }
  return approvals
}

async function topUp(signer: ItemSigner | undefined): Promise<void> {
  const session = await fetch(`${payment}/v1/top-up/checkout-session/${addressOf(signer)}/usd/1000`)
  const { paymentSession } = (await session.json()) as { paymentSession: { url: string } }
  const body = new URLSearchParams({ card: '4242424242424242' })
  await fetch(paymentSession.url, { method: 'POST', body, redirect: 'manual' })
}

t.before(() => topUp(giver))

t.test('what no gateway has is carried out', async (t) => {
  status = 404
  const item = approval(1001)
  t.equal((await post(item)).status, 200)
  t.same(
    (await approvals()).map(({ approvedWincAmount }) => approvedWincAmount),
    ['1001'],
  )
  t.ok(one.requested.includes(headerOf(item).id))
})

t.test('what a gateway has moves nothing', async (t) => {
  status = 200
  const answer = await post(approval(1002))
  t.equal(answer.status, 400)
  t.match(
    await answer.text(),
    /^Unable to create delegated payment approval : the item was posted to the network/,
  )
  const revoked = await post(itemBy(giver, [tagOf('x-delete-payment-approval', friend)]))
  t.equal(revoked.status, 400)
  t.match(
    await revoked.text(),
    /^Unable to revoke delegated payment approval : the item was posted to the network/,
  )
  t.same(
    (await approvals()).map(({ approvedWincAmount }) => approvedWincAmount),
    ['1001'],
  )
})

t.test('where no gateway states anything the order waits for its sender', async (t) => {
  status = 503
  const item = approval(1003)
  t.equal((await post(item)).status, 503)
  status = 404
  t.equal((await post(item)).status, 200, 'the same item again')
})

t.test('no gateway is asked for a wallet without credits', async (t) => {
  status = 404
  const item = itemBy(stranger, [tagOf('x-approve-payment', friend), tagOf('x-amount', '5')])
  const answer = await post(item)
  t.equal(answer.status, 400)
  t.match(await answer.text(), /^Unable to create delegated payment approval : Insufficient balance/)
  t.notOk(one.requested.includes(headerOf(item).id))
})

t.test('an old order that is posted while the first credits come moves nothing', async (t) => {
  status = 200
  const item = itemBy(newcomer, [tagOf('x-approve-payment', friend), tagOf('x-amount', '1004')])
  let isOver = false
  const posting = Array.from({ length: 16 }, async () => {
    while (!isOver) t.equal((await post(item, '198.51.100.9')).status, 400)
  })
  await pause(50)
  await topUp(newcomer)
  await pause(50)
  isOver = true
  await Promise.all(posting)
  t.same(await approvals(newcomer), [])
})

const balance = async (): Promise<bigint> => {
  const answer = await fetch(`${payment}/v1/account/balance/any?address=${addressOf(giver)}`)
  return BigInt(((await answer.json()) as { winc: string }).winc)
}

/** More than is free. */
const large = (byte: number, signer = giver): Uint8Array => {
  if (signer === undefined) throw new Error('no signer')
  return signItem(signer, {}, Buffer.alloc(300_000, byte))
}

t.test('nobody pays for an item that the network has, whoever posts it', async (t) => {
  const before = await balance()
  status = 200
  t.equal((await post(large(1))).status, 409)
  t.equal(await balance(), before)
  status = 404
  t.equal((await post(large(2))).status, 200)
  t.ok((await balance()) < before)
})

t.test('where no gateway states anything, nobody pays for what strangers post', async (t) => {
  status = 404
  t.equal((await post(large(6))).status, 200)
  for (const silent of [429, 500]) {
    status = silent
    const before = await balance()
    const [item, other] = [large(silent & 0xff), large((silent + 1) & 0xff)]
    const refused = await post(item, '198.51.100.1')
    t.equal(refused.status, 503)
    t.equal(refused.headers.get('retry-after'), '5')
    t.equal(await balance(), before)
    t.equal((await post(item)).status, 200, 'paid uploads do not depend on the gateways of others')
    t.equal((await post(other, '192.0.2.77')).status, 200, 'nor on one address')
  }
  status = 404
  const moved = large(7)
  t.equal((await post(moved, '198.51.100.1')).status, 200, 'from a new place, when a gateway answers')
  status = 429
  t.equal((await post(large(8), '198.51.100.2')).status, 200, 'which is known from then on')
})

t.test('who posts old items again and again is not looked up for long', async (t) => {
  status = 200
  await topUp(stranger)
  const old = Array.from({ length: 30 }, (_, at) => large(100 + at, stranger))
  const statuses: number[] = []
  for (const [at, item] of old.entries()) statuses.push((await post(item, `10.1.1.${at}`)).status)
  t.same(statuses, [...Array(20).fill(409), ...Array(10).fill(503)], 'from all of a network')
  t.ok(old.slice(20).every((item) => !one.requested.includes(headerOf(item).id)))
  status = 404
  t.equal((await post(large(12))).status, 200, 'others are')
  t.equal((await post(large(150, stranger), '10.2.1.1')).status, 200, 'and so is the wallet elsewhere')
})

t.test('no gateway is asked for who cannot pay, nor for what is not signed', async (t) => {
  status = 404
  const [unpaid, forged] = [large(9, poor), large(10)]
  // Another payload under the same signature.
  forged[forged.length - 1] = 11
  t.equal((await post(unpaid)).status, 402)
  t.equal((await post(forged)).status, 400)
  for (const item of [unpaid, forged]) t.notOk(one.requested.includes(headerOf(item).id))
})

t.test('an item of an uploaded bundle has the receipt of the bundle', async (t) => {
  status = 404
  if (giver === undefined) throw new Error('no signer')
  const items = [large(4), large(5)]
  const bundle = signItem(
    giver,
    { tags: [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')] },
    encodeBundle(items.map((bytes) => ({ id: headerOf(bytes).id, bytes }))),
  )
  t.equal((await post(bundle)).status, 200)
  const before = await balance()
  for (const item of items) {
    const answer = await post(item)
    t.equal(answer.status, 202)
    t.match(await answer.json(), {
      id: headerOf(item).id,
      winc: '0',
      owner: normalizedAddress(headerOf(item).owner),
    })
  }
  t.equal(await balance(), before)
})
