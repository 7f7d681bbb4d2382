import t from 'tap'
import { eventually } from '../eventually.js'
import { newAccount, payee, scene } from './scene.js'
import type { ScriptedFacilitator } from './scripted-facilitator.js'
import { get, payment, type Shop } from './shop.js'

/** A signature as contracts' wallets have it, which only the chain can judge. */
const ofContract = `0x${'11'.repeat(200)}`

/** Opens `count` requests at once, each with a payment of its own, and gives the answers by status. */
async function flood(
  shop: Shop,
  client: string,
  count: number,
  wish: (at: number) => Promise<Record<string, string>>,
): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  const tell = async (at: number): Promise<void> => {
    const { status } = await get(`${shop.url}/file`, { ...(await wish(at)), 'x-client': client })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  await Promise.all(Array.from({ length: count }, (_, at) => tell(at)))
  return statuses
}

/** The facilitator answers nobody of whom `holds` is so, until the returned function is called. */
function holding(facilitator: ScriptedFacilitator, holds: (text: string) => boolean): () => void {
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  facilitator.verify = async ({ text, json }) => {
    if (!holds(text)) return false
    await released
    json(200, { isValid: false, invalidReason: 'invalid_exact_evm_signature' })
    return true
  }
  return release
}

t.test('one client that floods with contract signatures does not block others', async (t) => {
  const { facilitator, shop, payer } = await scene(t, { verifyMs: 60_000, cashier: { waitMs: 60_000 } })
  const release = holding(facilitator, (text) => text.includes(ofContract))
  const made = (): Promise<Record<string, string>> =>
    payment(newAccount(), 1, { to: payee, signature: ofContract })
  const flooding = flood(shop, '198.51.100.1', 300, made)
  await eventually('four payments are being verified', () => facilitator.count('verify') === 4)
  for (const client of ['198.51.100.1', '198.51.100.2']) {
    const got = await get(`${shop.url}/file`, {
      ...(await payment(payer, 2, { to: payee })),
      'x-client': client,
    })
    t.equal(got.status, 200, 'plain keys have a lane of their own')
  }
  facilitator.verify = ({ text, json }) => {
    if (!text.includes('22'.repeat(200))) return false
    json(200, { isValid: true })
    return true
  }
  facilitator.settle = ({ json }) => {
    json(200, { success: true, transaction: `0x${'ab'.repeat(32)}` })
    return true
  }
  const wallet = await payment(newAccount(), 1, { to: payee, signature: `0x${'22'.repeat(200)}` })
  const honest = await get(`${shop.url}/file`, { ...wallet, 'x-client': '198.51.100.3' })
  t.equal(honest.status, 200, "and so do other clients' contracts")
  release()
  t.same(
    await flooding,
    new Map([
      [503, 296],
      [402, 4],
    ]),
    'the rest was turned away at once',
  )
})

t.test('many clients of a network with made-up contract signatures block nobody else', async (t) => {
  const { facilitator, shop, payer } = await scene(t, { verifyMs: 60_000, cashier: { waitMs: 60_000 } })
  const release = holding(facilitator, (text) => text.includes(ofContract))
  const floods = Array.from({ length: 20 }, (_, at) =>
    flood(shop, `203.0.113.${at}`, 4, () => payment(newAccount(), 1, { to: payee, signature: ofContract })),
  )
  await eventually('sixteen payments are being verified', () => facilitator.count('verify') === 16)
  const good = await payment(payer, 1, { to: payee })
  const paid = await get(`${shop.url}/file`, { ...good, 'x-client': '198.51.100.2' })
  t.equal(paid.status, 200, 'a plain key, while all of theirs wait for their answers')
  facilitator.verify = ({ text, json }) => {
    if (!text.includes('22'.repeat(200))) return false
    json(200, { isValid: false, invalidReason: 'invalid_exact_evm_signature' })
    return true
  }
  const other = payment(newAccount(), 1, { to: payee, signature: `0x${'22'.repeat(200)}` })
  const judged = await get(`${shop.url}/file`, { ...(await other), 'x-client': '198.51.100.3' })
  t.equal(judged.status, 402, "and a contract's wallet of another network, which the facilitator refuses")
  release()
  const all = await Promise.all(floods)
  t.equal(
    all.reduce((sum, one) => sum + (one.get(402) ?? 0), 0),
    16,
  )
})

t.test('many clients of a network with payments by plain keys leave places for others', async (t) => {
  const room = { settlementsMax: 40, settlementsEachMax: 4 }
  const { facilitator, shop, payer } = await scene(t, {
    verifyMs: 60_000,
    cashier: { waitMs: 60_000, ...room },
  })
  const release = holding(facilitator, (text) => !text.toLowerCase().includes(payer.address.toLowerCase()))
  const poor = (): Promise<Record<string, string>> => payment(newAccount(), 1, { to: payee })
  const floods = Array.from({ length: 12 }, (_, at) => flood(shop, `203.0.113.${at}`, 4, poor))
  await eventually('twenty payments are being verified', () => facilitator.count('verify') === 20)
  const good = await payment(payer, 1, { to: payee })
  t.equal((await get(`${shop.url}/file`, { ...good, 'x-client': '198.51.100.2' })).status, 200)
  release()
  await Promise.all(floods)
})

t.test('failed payments of one client use no more than its share, and are counted', async (t) => {
  const room = { settlementsMax: 40, settlementsEachMax: 8 }
  const { facilitator, shop, payer } = await scene(t, {
    verifyMs: 60_000,
    cashier: { waitMs: 60_000, ...room },
  })
  const release = holding(facilitator, (text) => !text.toLowerCase().includes(payer.address.toLowerCase()))
  const poor = (): Promise<Record<string, string>> => payment(newAccount(), 1, { to: payee })
  const flooding = flood(shop, '198.51.100.1', 50, poor)
  await eventually('eight payments are being verified', () => facilitator.count('verify') === 8)
  const good = await payment(payer, 1, { to: payee })
  t.equal((await get(`${shop.url}/file`, { ...good, 'x-client': '198.51.100.2' })).status, 200)
  release()
  t.equal((await flooding).get(402), 8)
  await eventually('the flood is refused', async () => (await flood(shop, '198.51.100.9', 8, poor)).has(503))
  t.pass('what a facilitator refuses counts')
  const another = { ...(await payment(payer, 1, { to: payee })), 'x-client': '198.51.100.2' }
  t.equal((await get(`${shop.url}/file`, another)).status, 200)
})

t.test('a client that repeats one valid payment endlessly does not use up the thread', async (t) => {
  const { shop, payer } = await scene(t)
  const good = await payment(payer, 1, { to: payee })
  t.equal((await get(`${shop.url}/file`, { ...good, 'x-client': '198.51.100.1' })).status, 200)
  const large = { ...good, 'x-client': '198.51.100.1' }
  const shown = Promise.all(Array.from({ length: 150 }, () => get(`${shop.url}/999999999999`, large)))
  const other = { ...(await payment(payer, 1, { to: payee })), 'x-client': '198.51.100.2' }
  t.equal((await get(`${shop.url}/file`, other)).status, 200)
  await shown
})
