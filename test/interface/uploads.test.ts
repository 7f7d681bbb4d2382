import { createHash, type JsonWebKey } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ArweaveSigner, createData, EthereumSigner, type Signer, SolanaSigner } from 'arbundles'
import t, { type Test } from 'tap'
import { encodeBase58 } from '../../src/format/base58.js'
import { parseItemHeader } from '../../src/format/item.js'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { isSigned, type Receipt } from '../flow/receipts.js'
import { type Running, run } from '../flow/running.js'

const fixtures = fileURLToPath(new URL('../../../test/fixture/', import.meta.url))
const jwk = JSON.parse(readFileSync(`${fixtures}rsa-4096.jwk.json`, 'utf8')) as JsonWebKey
const seed = Buffer.alloc(32, 7)

const program = await run(t, t.testdir(), { SERVICES: 'gateway,upload', UPLOAD_FREE_ITEM_BYTES: '1000000' })
const { upload = '', gateway = '' } = program.urls

function post(bytes: Uint8Array, path = '/tx', headers: Record<string, string> = {}): Promise<Response> {
  return fetch(upload + path, {
    method: 'POST',
    body: bytes,
    headers: { 'content-type': 'application/octet-stream', ...headers },
  })
}

async function query(id: string): Promise<unknown> {
  const text = `{ transaction(id: "${id}") { id block { height } bundledIn { id } owner { address } } }`
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: text }),
  })
  return ((await answer.json()) as { data: { transaction: unknown } }).data.transaction
}

/** Its public key is a point of another curve than the one that arbundles makes of a seed. */
const solana = encodeBase58(Buffer.concat([seed, ed25519Signer(seed).owner]))
const signers: readonly (readonly [string, Signer, string])[] = [
  ['arweave', new ArweaveSigner(jwk as ConstructorParameters<typeof ArweaveSigner>[0]), '/tx'],
  ['ethereum', new EthereumSigner(seed.toString('hex')), '/v1/tx/ethereum'],
  ['solana', new SolanaSigner(solana), '/v1/tx/solana'],
]
for (const [name, signer, path] of signers) {
  t.test(`an item signed with a key of ${name} has a receipt and is served`, async (t) => {
    const tags = [{ name: 'Content-Type', value: 'text/plain' }]
    const item = createData(`from ${name}`, signer, { tags })
    await item.sign(signer)
    t.equal((await fetch(`${gateway}/${item.id}`)).status, 404)
    const answer = await post(item.getRaw(), path)
    t.equal(answer.status, 200)
    const receipt = (await answer.json()) as Receipt
    t.match(receipt, { id: item.id, version: '0.2.0', winc: '0', dataCaches: [gateway] })
    t.ok(isSigned(receipt))
    t.notOk(isSigned({ ...receipt, timestamp: receipt.timestamp + 1 }))
    t.equal(receipt.owner, createHash('sha256').update(item.rawOwner).digest('base64url'))
    const served = await fetch(`${gateway}/${item.id}`)
    t.equal(await served.text(), `from ${name}`)
    t.equal(served.headers.get('x-gateway-verified'), 'false')
    t.equal(served.headers.get('x-gateway-stable'), 'false')
    t.match(await query(item.id), { id: item.id, block: null, bundledIn: null })
    const again = await post(item.getRaw(), path)
    t.equal(again.status, 202)
    t.strictSame(await again.json(), receipt, 'the same receipt')
    const status = await fetch(`${upload}/v1/tx/${item.id}/status`)
    t.equal(((await status.json()) as { status: string }).status, 'CONFIRMED')
  })
}

t.test("every item of the network is taken, but for the one whose signature is another's", async (t) => {
  for (const name of readdirSync(`${fixtures}items`)) {
    const bytes = readFileSync(`${fixtures}items/${name}`)
    const answer = await post(bytes)
    if (name === 'invalid-signature.item') {
      t.equal(answer.status, 400)
      t.equal(await answer.text(), 'Invalid Data Item!')
      continue
    }
    t.equal(answer.status, 200, name)
    const { id } = (await answer.json()) as Receipt
    const header = parseItemHeader(bytes)
    if (header === 'more' || 'refused' in header) throw new Error('a fixture is no item')
    t.equal(id, header.id)
    const served = Buffer.from(await (await fetch(`${gateway}/raw/${id}`)).arrayBuffer())
    t.ok(served.equals(bytes.subarray(header.headerSize)), `${name} byte for byte`)
  }
})

t.test('bytes that are no item are refused with the place where reading stopped', async (t) => {
  const item = signItem(ed25519Signer(seed), {}, Buffer.from('sound'))
  const cases: readonly (readonly [Uint8Array, number, RegExp])[] = [
    [new Uint8Array(0), 400, /^Data item parsing error! .*\(byte 0\)$/],
    [Buffer.from('no item at all'), 400, /signature type 28526 is unknown \(byte 0\)$/],
    [item.subarray(0, 90), 400, /ends in its header \(byte 90\)$/],
    [Buffer.concat([item.subarray(0, 100), Uint8Array.of(200), item.subarray(101)]), 400, /\(byte 100\)$/],
    [Buffer.concat([item, Buffer.from('more')]), 400, /^Invalid Data Item!$/],
  ]
  for (const [bytes, status, words] of cases) {
    const answer = await post(bytes)
    t.equal(answer.status, status)
    t.match(await answer.text(), words)
  }
  const typed = await post(item, '/tx', { 'content-type': 'text/plain' })
  t.equal(typed.status, 400)
  t.equal(await typed.text(), 'Invalid Content Type')
  t.equal((await post(item)).status, 200)
})

t.test('two who send the same item at once have one receipt', async (t) => {
  const item = signItem(ed25519Signer(seed), {}, Buffer.alloc(50_000, 'twice'))
  const answers = await Promise.all([1, 2, 3, 4].map(() => post(item)))
  t.strictSame(answers.map(({ status }) => status).sort(), [200, 202, 202, 202])
  const receipts = await Promise.all(answers.map((answer) => answer.text()))
  t.equal(new Set(receipts).size, 1)
})

t.test('what is too large to be free says so in a way that programs read', async (t) => {
  const item = signItem(ed25519Signer(seed), {}, Buffer.alloc(1_200_000, 'large'))
  // Where the payment service is slow the client is told to come again.
  const answer = await eventually('an answer other than 503', async () => {
    const one = await post(item)
    return one.status === 503 ? undefined : one
  })
  t.equal(answer.status, 402)
  t.equal(answer.headers.get('x-free-tier-exhausted'), 'true')
  t.match(await answer.json(), { code: 'FREE_TIER_EXHAUSTED', error: 'Insufficient balance' })
})

t.test('the service says who it is, and what it takes', async (t) => {
  for (const path of ['/', '/info', '/v1', '/v1/info']) {
    const about = (await (await fetch(upload + path)).json()) as { addresses: { arweave: string } }
    const address = normalizedAddress(Buffer.from(jwk.n ?? '', 'base64url'))
    t.match(about, {
      version: '0.2.0',
      addresses: { arweave: address },
      gateway,
      freeUploadLimitBytes: 1_000_000,
    })
  }
  t.equal((await fetch(`${upload}/tx/${'A'.repeat(43)}/status`)).status, 404)
  t.equal((await fetch(`${upload}/nothing`)).status, 404)
  t.equal((await fetch(`${upload}/tx`)).status, 405)
  const preflightHeaders = {
    'access-control-request-headers': 'x-paid-by',
    'access-control-request-method': 'POST',
  }
  const preflight = await fetch(`${upload}/tx`, { method: 'OPTIONS', headers: preflightHeaders })
  t.equal(preflight.headers.get('access-control-allow-headers'), 'x-paid-by')
})

t.test('what was taken is there after a kill, and in a block some time later', async (t) => {
  const folder = t.testdir()
  const settings = { SERVICES: 'gateway,upload' }
  const first = await run(t, folder, settings)
  const item = signItem(ed25519Signer(seed), {}, Buffer.from('before the kill'))
  const send = (base = ''): Promise<Response> => fetch(`${base}/tx`, { method: 'POST', body: item })
  const receipt = (await (await send(first.urls.upload)).json()) as Receipt
  await first.kill()
  const second = await run(t, folder, { ...settings, DEVNET_BLOCK_MS: '300' })
  t.equal(await (await fetch(`${second.urls.gateway}/${receipt.id}`)).text(), 'before the kill')
  const again = await send(second.urls.upload)
  t.equal(again.status, 202)
  const { dataCaches: _, ...same } = (await again.json()) as Receipt
  t.match(receipt, { id: same.id, signature: same.signature, timestamp: same.timestamp })
  await t.test('verified and stable', (t) => isPermanent(t, second))
})

async function isPermanent(t: Test, { urls }: Running): Promise<void> {
  const items = ['one', 'two', 'three'].map((text) => signItem(ed25519Signer(seed), {}, Buffer.from(text)))
  const ids: string[] = []
  for (const item of items) {
    const answer = await fetch(`${urls.upload}/tx`, { method: 'POST', body: item })
    ids.push(((await answer.json()) as Receipt).id)
  }
  for (const [at, id] of ids.entries()) {
    const status = await eventually('the item is permanent', async () => {
      const statusAnswer = await (await fetch(`${urls.upload}/tx/${id}/status`)).json()
      return (
        (statusAnswer as { status: string }).status === 'FINALIZED' &&
        (statusAnswer as Record<string, unknown>)
      )
    })
    t.match(status, { info: 'permanent', winc: '0', rawContentLength: items[at]?.length })
    const served = await eventually('the item is served as verified and stable', async () => {
      const answer = await fetch(`${urls.gateway}/raw/${id}`)
      const isGood = answer.headers.get('x-gateway-verified') === 'true'
      return isGood && answer.headers.get('x-gateway-stable') === 'true' && answer
    })
    t.equal(await served.text(), ['one', 'two', 'three'][at])
    t.equal(served.headers.get('x-gateway-root-transaction-id'), status.bundleId)
    t.equal(
      served.headers.get('x-gateway-root-item-offset') ?? served.headers.get('x-gateway-data-item-offset'),
      String(status.startOffsetInRootBundle),
    )
  }
}

t.test('the program ends when it is told to', async (t) => {
  t.equal(await program.stop(), 0)
})
