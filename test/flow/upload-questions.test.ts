import { createHash } from 'node:crypto'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import type { Id } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { tagOf } from '../../src/format/tag.js'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { run } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 12))
const root = t
const folder = root.testdir()
const adminKey = 'the-admin-key-of-this-test'
/** Bundles are not opened when they are in a block, as on mainnet. */
const settings = {
  DEVNET_SEED: 'false',
  ADMIN_API_KEY: adminKey,
  ANS104_UNBUNDLE_FILTER: JSON.stringify({ never: true }),
}
let program = await run(t, folder, settings)

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

function check(body: string): Promise<Response> {
  return fetch(`${program.urls.upload}/v1/check-missing`, { method: 'POST', body })
}

async function post(text: string): Promise<{ id: string; owner: string }> {
  const body = signItem(signer, {}, Buffer.from(text))
  const answer = await fetch(`${program.urls.upload}/tx`, { method: 'POST', body })
  return (await answer.json()) as { id: string; owner: string }
}

t.test('an owner asks which contents are here', async (t) => {
  const { id, owner } = await post('here')
  const sha256 = [hashOf('here'), hashOf('not here'), hashOf('here').toUpperCase()]
  const expected = { missing: [hashOf('not here')], found: { [hashOf('here')]: id } }
  t.same(await (await check(JSON.stringify({ sha256, owner }))).json(), expected)
  await program.kill()
  program = await run(root, folder, settings)
  t.same(await (await check(JSON.stringify({ sha256, owner }))).json(), expected)
  const stranger = 'A'.repeat(43)
  const theirs = await (await check(JSON.stringify({ sha256: [hashOf('here')], owner: stranger }))).json()
  t.same(theirs, { missing: [hashOf('here')], found: {} })
})

t.test('an owner asks for contents inside of an uploaded bundle', async (t) => {
  const stranger = ed25519Signer(Buffer.alloc(32, 13))
  const own = ['first inside', 'second inside'].map((text) => signItem(signer, {}, Buffer.from(text)))
  const [other, forged] = ['theirs', 'forged'].map((text) => signItem(stranger, {}, Buffer.from(text)))
  // The payload was changed behind its signature.
  const changed = Buffer.from(forged as Uint8Array)
  changed[changed.length - 1] = 0
  const inside = [...own, other as Uint8Array, changed].map((bytes) => {
    const header = parseItemHeader(bytes)
    if (header === 'more' || isRefusal(header)) throw new Error('an item that was just signed is none')
    return { id: header.id, bytes, owner: normalizedAddress(header.owner) }
  })
  const tags = Object.entries({ 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' }).map(
    ([name, value]) => ({ name: Buffer.from(name), value: Buffer.from(value) }),
  )
  const body = signItem(signer, { tags }, encodeBundle(inside))
  t.equal((await fetch(`${program.urls.upload}/tx`, { method: 'POST', body })).status, 200)
  const [one, two, theirs, bad] = inside
  const owner = one?.owner ?? ''
  const ask = async (by: string, ...texts: string[]): Promise<object> =>
    (await (await check(JSON.stringify({ sha256: texts.map(hashOf), owner: by }))).json()) as object
  const found = { [hashOf('first inside')]: one?.id, [hashOf('second inside')]: two?.id }
  const isSame = async (): Promise<boolean> =>
    JSON.stringify(await ask(owner, 'first inside', 'second inside')) ===
    JSON.stringify({ missing: [], found })
  t.ok(await isSame())
  t.same(await ask(theirs?.owner ?? '', 'theirs'), { missing: [], found: { [hashOf('theirs')]: theirs?.id } })
  for (const text of ['forged', 'forge\0'])
    t.match(await ask(bad?.owner ?? '', text), { found: {} }, 'nobody signed it')
  for (const { id, bytes } of inside.slice(0, 3)) {
    const answer = await eventually('the item is served', async () => {
      const served = await fetch(`${program.urls.gateway}/raw/${id}`)
      return served.ok && served
    })
    const payload = bytes.subarray(bytes.length - Number(answer.headers.get('content-length')))
    t.ok(Buffer.from(await answer.arrayBuffer()).equals(payload), 'it is served before its block')
  }
  t.equal((await fetch(`${program.urls.gateway}/raw/${bad?.id}`)).status, 404)
  await program.kill()
  program = await run(root, folder, settings)
  t.ok(await isSame(), 'also by a service that was killed')
})

t.test('what lies in a bundle is found as soon as the receipt of the bundle is here', async (t) => {
  const bundled = Object.entries({ 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' })
  const tags = bundled.map(([name, value]) => tagOf(name, value))
  const { upload, gateway } = program.urls
  let prompt = 0
  for (let round = 0; prompt < 20 && round < 60; round += 1) {
    const bytes = signItem(
      signer,
      { tags: [tagOf('Folder-Id', `f-${round}`)] },
      Buffer.from(`inside ${round}`),
    )
    const header = parseItemHeader(bytes)
    if (header === 'more' || isRefusal(header)) throw new Error('an item that was just signed is none')
    const body = signItem(signer, { tags }, encodeBundle([{ id: header.id, bytes }]))
    const notedAt = performance.now()
    t.equal((await fetch(`${upload}/tx`, { method: 'POST', body })).status, 200)
    // The receipt waits for a second at most: on a machine that has no time it promises nothing.
    if (performance.now() - notedAt > 1000) continue
    prompt += 1
    const query = `{ transactions(tags: [{ name: "Folder-Id", values: ["f-${round}"] }]) { edges { node { id } } } }`
    const found = await fetch(`${gateway}/graphql?query=${encodeURIComponent(query)}`)
    t.match(await found.json(), { data: { transactions: { edges: [{ node: { id: header.id } }] } } })
    t.equal(await (await fetch(`${gateway}/raw/${header.id}`)).text(), `inside ${round}`)
  }
  t.ok(prompt > 0, `${prompt} receipts within a second`)
})

t.test('a blocked bundle blocks what was uploaded in it', async (t) => {
  const { upload, gateway } = program.urls
  const [inside, alone] = ['blocked with its bundle', 'uploaded on its own, too'].map((text) => {
    const bytes = signItem(signer, {}, Buffer.from(text))
    const header = parseItemHeader(bytes)
    if (header === 'more' || isRefusal(header)) throw new Error('an item that was just signed is none')
    return { id: header.id, bytes }
  }) as [{ id: Id; bytes: Uint8Array }, { id: Id; bytes: Uint8Array }]
  const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
  const body = signItem(signer, { tags }, encodeBundle([inside, alone]))
  const header = parseItemHeader(body)
  if (header === 'more' || isRefusal(header)) throw new Error('a bundle that was just signed is none')
  for (const bytes of [alone.bytes, body])
    t.equal((await fetch(`${upload}/tx`, { method: 'POST', body: bytes })).status, 200)
  const statusOf = async (id: Id): Promise<number> => (await fetch(`${gateway}/raw/${id}`)).status
  await eventually(
    'both are served',
    async () => (await statusOf(inside.id)) + (await statusOf(alone.id)) === 400,
  )
  const blocked = await fetch(`${gateway}/gateway/admin/block-data`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id: header.id, notes: 'n', source: 's' }),
  })
  t.equal(blocked.status, 200)
  t.equal(await statusOf(header.id), 451)
  t.equal(await statusOf(inside.id), 451)
  t.equal(await statusOf(alone.id), 200, 'others cannot put it into a bundle that will be blocked')
})

t.test('a question of another form is refused', async (t) => {
  const owner = 'A'.repeat(43)
  const wrong = [
    '',
    '{',
    '[]',
    'null',
    JSON.stringify({ owner }),
    JSON.stringify({ sha256: [] }),
    JSON.stringify({ sha256: ['x'], owner }),
    JSON.stringify({ sha256: [1], owner }),
    JSON.stringify({ sha256: Array(10_001).fill(''), owner }),
  ]
  for (const body of wrong) t.equal((await check(body)).status, 400, body.slice(0, 50))
  t.equal((await check('x'.repeat(2_000_000))).status, 413)
})

t.test('prices are plain numbers', async (t) => {
  const price = async (path: string): Promise<bigint> =>
    BigInt(await (await fetch(`${program.urls.upload}/price/${path}`)).text())
  const small = await price('1000')
  t.ok(small > 0n)
  t.equal(await price('arweave/1000'), small)
  t.ok((await price('1000000000')) > small)
  for (const word of ['0', '-1', 'x', '1.5'])
    t.equal((await fetch(`${program.urls.upload}/price/${word}`)).status, 400, word)
})

t.test('the credits of a wallet are a plain number, for clients that ask here', async (t) => {
  const { upload, payment } = program.urls
  const wallet = 'b'.repeat(43)
  const balanceText = async (path: string): Promise<string> => (await fetch(`${upload}${path}`)).text()
  t.equal(await balanceText(`/account/balance/arweave?address=${wallet}`), '0')
  const where = `${payment}/v1/top-up/checkout-session/${wallet}/usd/1000`
  const { paymentSession } = (await (await fetch(where)).json()) as { paymentSession: { url: string } }
  const body = new URLSearchParams({ card: '4242424242424242' })
  await fetch(paymentSession.url, { method: 'POST', body, redirect: 'manual' })
  const paid = await eventually('the wallet has credits', async () => {
    const balance = await balanceText(`/account/balance/arweave?address=${wallet}`)
    return balance !== '0' && balance
  })
  const known = await fetch(`${payment}/v1/account/balance/arweave?address=${wallet}`)
  t.equal(((await known.json()) as { winc: string }).winc, paid)
  t.equal(await balanceText(`/v1/account/balance?address=${wallet}`), paid)
  t.equal(await balanceText('/account/balance/arweave'), 'Missing address in query parameters')
  t.equal((await fetch(`${upload}/account/balance/arweave?address=a/b`)).status, 400)
})

t.test('browsers see a page, and programs what it says', async (t) => {
  const page = await fetch(`${program.urls.upload}/`, { headers: { accept: 'text/html,*/*' } })
  t.match(page.headers.get('content-type'), /^text\/html/)
  const html = await page.text()
  const links = [...html.matchAll(/<a href="([^"]+)"/g)].map(([, link = '']) => link)
  t.ok(links.length >= 4)
  for (const link of links) t.equal((await fetch(new URL(link, program.urls.upload))).status, 200, link)
  const found = await fetch(`${program.urls.upload}/`)
  t.match(await found.json(), { version: '0.2.0', gateway: program.urls.gateway })
})

t.test('the program ends when it is told to', async (t) => {
  t.equal(await program.stop(), 0)
})
