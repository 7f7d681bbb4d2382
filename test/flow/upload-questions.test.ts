import { createHash } from 'node:crypto'
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { run } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 12))
const root = t
const folder = root.testdir()
let program = await run(t, folder, { DEVNET_SEED: 'false' })

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
  program = await run(root, folder, { DEVNET_SEED: 'false' })
  t.same(await (await check(JSON.stringify({ sha256, owner }))).json(), expected)
  const stranger = 'A'.repeat(43)
  const theirs = await (await check(JSON.stringify({ sha256: [hashOf('here')], owner: stranger }))).json()
  t.same(theirs, { missing: [hashOf('here')], found: {} })
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

t.test('browsers see a page, and programs what it says', async (t) => {
  const page = await fetch(`${program.urls.upload}/`, { headers: { accept: 'text/html,*/*' } })
  t.match(page.headers.get('content-type'), /^text\/html/)
  const html = await page.text()
  const links = [...html.matchAll(/<a href="([^"]+)"/g)].map(([, link = '']) => link)
  t.ok(links.length >= 4)
  for (const link of links) t.equal((await fetch(new URL(link, program.urls.upload))).status, 200, link)
  const told = await fetch(`${program.urls.upload}/`)
  t.match(await told.json(), { version: '0.2.0', gateway: program.urls.gateway })
})

t.test('the program ends when it is told to', async (t) => {
  t.equal(await program.stop(), 0)
})
