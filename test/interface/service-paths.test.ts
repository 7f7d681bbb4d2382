/** The descriptions of the upload and payment services, held against what they answer by a validating proxy of others. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { findPort } from '../../src/actor/claim.js'
import { makeServiceToken } from '../../src/payment/requests/service-token.js'
import { nativeAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { run } from '../flow/running.js'

const prism = fileURLToPath(new URL('../../../test/clients/node_modules/.bin/prism', import.meta.url))
const skip = existsSync(prism) ? false : 'install test/clients to run it'
const signer = ed25519Signer(Buffer.alloc(32, 13))
const key = 'a-key-for-the-tests'
const secret = 'a-secret-of-the-services-for-tests'

interface Described {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly responses: Readonly<
              Record<string, { readonly content?: Record<string, { schema?: object }> }>
            >
          }
        >
      >
    >
  >
}

/** A proxy that says in a header line what contradicts the description: by request or by answer. */
async function proxied(t: Test, url: string, change = (text: string): string => text): Promise<string> {
  const path = `${t.testdirName}.json`
  writeFileSync(path, change(await (await fetch(`${url}/openapi.json`)).text()))
  const port = await findPort('127.0.0.1', 0, 'prism')
  const child: ChildProcess = spawn(process.execPath, [prism, 'proxy', path, url, '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let received = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (piece: Buffer) => {
      received += piece.toString()
    })
  t.teardown(async () => {
    if (child.exitCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  await eventually('prism listens', () => {
    if (child.exitCode !== null) throw new Error(`prism has ended: ${received}`)
    return received.includes('Prism is listening')
  })
  return `http://127.0.0.1:${port}`
}

type Call = readonly [
  status: number,
  method: string,
  path: string,
  body?: string | undefined,
  headers?: Record<string, string>,
]

async function calls(t: Test, proxy: string, list: readonly Call[]): Promise<void> {
  for (const [status, method, path, body, headers = {}] of list) {
    const content = body === undefined ? {} : { body: Buffer.from(body) }
    const answer = await fetch(proxy + path, { method, headers: { accept: '*/*', ...headers }, ...content })
    const text = await answer.text()
    t.equal(answer.status, status, `${method} ${path}: ${text.slice(0, 100)}`)
    t.equal(answer.headers.get('sl-violations'), null, `${method} ${path} is as described`)
  }
}

/** Every good answer in JSON has a form. */
async function isComplete(t: Test, url: string): Promise<void> {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as Described
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { responses }] of Object.entries(methods)) {
      const json = responses['200']?.content?.['application/json']
      if (json !== undefined) t.ok(json.schema, `${method} ${path} says what it gives`)
    }
  }
}

t.test('the upload service is as it says', { skip }, async (t) => {
  // No block is made: what was posted stays so.
  const { urls } = await run(t, t.testdir(), {
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '0',
    ADMIN_API_KEY: key,
  })
  const { upload = '' } = urls
  await isComplete(t, upload)
  const item = Buffer.from(signItem(signer, {}, Buffer.from('described')))
  const taken = await fetch(`${upload}/tx`, { method: 'POST', body: item })
  const { id } = (await taken.json()) as { id: string }
  const begun = await fetch(`${upload}/v1/chunks/arweave/-1/-1?chunkSize=5242880`)
  const { id: parts } = (await begun.json()) as { id: string }
  const place = await fetch(`${upload}/upload`, { method: 'POST', headers: { 'upload-complete': '?0' } })
  const resumable = place.headers.get('location') ?? ''
  await eventually(
    'the place of the item is known',
    async () => (await fetch(`${upload}/tx/${id}/offsets`)).status === 200,
  )
  const offsets = await fetch(`${upload}/tx/${id}/offsets`)
  const { rootBundleId: carrier } = (await offsets.json()) as { rootBundleId: string }
  const operator = { authorization: `Bearer ${key}` }
  const proxy = await proxied(t, upload)
  const octets = { 'content-type': 'application/octet-stream' }
  const partial = { 'content-type': 'application/partial-upload', 'upload-offset': '0' }
  const check = JSON.stringify({ owner: 'A'.repeat(43), sha256: ['0'.repeat(64)] })
  await calls(t, proxy, [
    [200, 'GET', '/'],
    [200, 'GET', '/v1/info'],
    [200, 'GET', '/health'],
    [200, 'GET', '/metrics'],
    [200, 'GET', '/price/1000'],
    [200, 'GET', '/price/x402/data-item/usdc-base/1000'],
    [200, 'GET', '/v1/price/x402/data/usdc-base/1000?tags=1'],
    [400, 'GET', '/price/x402/data-item/gold/1000'],
    [402, 'POST', '/v1/x402/upload/signed', 'unpaid', octets],
    [200, 'POST', '/x402/upload/unsigned', 'free', octets],
    [400, 'GET', '/price/none'],
    [200, 'GET', '/v1/price/arweave/1000'],
    [200, 'GET', `/tx/${id}/status`],
    [200, 'GET', `/v1/tx/${id}/offsets`],
    [404, 'GET', `/tx/${'A'.repeat(43)}/status`],
    [200, 'GET', '/chunks/arweave/-1/-1'],
    [400, 'GET', '/chunks/arweave/-1/-1?chunkSize=1'],
    [200, 'GET', `/v1/chunks/arweave/${parts}/-1`],
    [200, 'GET', `/v1/chunks/arweave/${parts}/status`],
    [400, 'POST', `/v1/chunks/arweave/${parts}/finalize`],
    [404, 'GET', '/chunks/arweave/nobody/status'],
    [200, 'POST', '/check-missing', check, { 'content-type': 'application/json' }],
    [200, 'GET', '/upload'],
    [201, 'POST', '/upload', undefined, { 'upload-complete': '?0' }],
    [200, 'GET', resumable],
    [204, 'PATCH', resumable, 'abc', { ...partial, 'upload-complete': '?0' }],
    [409, 'PATCH', resumable, 'abc', { ...partial, 'upload-complete': '?0' }],
    [204, 'DELETE', resumable],
    [404, 'GET', resumable],
    [400, 'POST', '/tx', 'no item', octets],
    [200, 'GET', '/openapi.json'],
    [200, 'GET', '/admin/uploads', undefined, operator],
    [200, 'GET', `/admin/uploads/${id}`, undefined, operator],
    [200, 'GET', `/admin/uploads/${carrier}`, undefined, operator],
    [404, 'GET', '/admin/uploads/nobody', undefined, operator],
    [404, 'POST', `/admin/uploads-repack/${'A'.repeat(43)}`, undefined, operator],
    [200, 'POST', `/admin/uploads-reseed/${carrier}`, undefined, operator],
    [409, 'POST', `/admin/uploads-trust/${carrier}`, undefined, operator],
    [200, 'POST', `/admin/uploads-repack/${carrier}`, undefined, operator],
  ])

  await t.test('the proxy does find what is not as described', async (t) => {
    const proxy = await proxied(t, upload, (text) => text.replaceAll('"lifetimeBytes"', '"somethingElse"'))
    t.match((await fetch(`${proxy}/info`)).headers.get('sl-violations'), /somethingElse/)
  })
})

t.test('the payment service', { skip }, async (t) => {
  const { urls } = await run(t, t.testdir(), { ADMIN_API_KEY: key, PRIVATE_ROUTE_SECRET: secret })
  const { payment = '' } = urls
  await isComplete(t, payment)
  const proxy = await proxied(t, payment)
  await t.test('is as it says', (t) => creditsAreAsDescribed(t, payment, proxy))
  await t.test('answers names, services and operators as it says', (t) =>
    namesAreAsDescribed(t, payment, proxy),
  )
})

async function creditsAreAsDescribed(t: Test, payment: string, proxy: string): Promise<void> {
  const wallet = '0x1111111111111111111111111111111111111111'
  const correction = { key: 'described-1', address: wallet, winc: '5000', note: 'for the description' }
  const headers = { authorization: `Bearer ${key}` }
  await fetch(`${payment}/admin/corrections`, { method: 'POST', headers, body: JSON.stringify(correction) })
  const json = { 'content-type': 'application/json' }
  await calls(t, proxy, [
    [200, 'GET', '/v1/info'],
    [200, 'GET', '/health'],
    [200, 'GET', '/metrics'],
    [200, 'GET', '/v1/price/bytes/1000'],
    [400, 'GET', '/v1/price/bytes/-1'],
    [200, 'GET', '/v1/price/usd/1000'],
    [200, 'GET', '/v1/price/arweave/1000000000000'],
    [400, 'GET', '/v1/price/nothing/5'],
    [200, 'GET', '/v1/rates'],
    [200, 'GET', '/v1/rates/usd'],
    [404, 'GET', '/v1/rates/zzz'],
    [200, 'GET', '/v1/currencies'],
    [200, 'GET', '/v1/countries'],
    [200, 'GET', `/v1/account/balance/ethereum?address=${wallet}`],
    [404, 'GET', '/v1/account/balance/ethereum?address=0x2222222222222222222222222222222222222222'],
    [403, 'GET', '/v1/balance'],
    [200, 'GET', `/v1/account/free?address=${wallet}`],
    [401, 'GET', '/v1/account/payments'],
    [200, 'GET', `/v1/account/approvals/get?userAddress=${wallet}`],
    [400, 'POST', '/v1/account/balance/nothing', '{"tx_id":"x"}', json],
    [200, 'GET', `/v1/top-up/checkout-session/${wallet}/usd/1000`],
    [200, 'GET', '/admin/credits', undefined, headers],
    [200, 'GET', `/v1/x402/price/ethereum/${wallet}?bytes=1000`],
    [402, 'POST', `/v1/x402/top-up/ethereum/${wallet}`, '{"bytes":1000}', json],
    [402, 'POST', `/v1/x402/payment/ethereum/${wallet}`, '{"byteCount":1000,"dataItemId":"x"}', json],
    [400, 'GET', '/v1/redeem?email=nobody'],
  ])
}

async function namesAreAsDescribed(t: Test, payment: string, proxy: string): Promise<void> {
  const wallet = nativeAddress(signer.signatureType, signer.owner)
  const operator = { authorization: `Bearer ${key}` }
  const service = { authorization: `Bearer ${await makeServiceToken(secret, Date.now())}` }
  const json = { 'content-type': 'application/json' }
  const correction = { key: 'described-2', address: wallet, winc: '9'.repeat(18), note: 'for a name' }
  const promotion = {
    code: 'DESCRIBED',
    permille: 100,
    expiresMs: 4e12,
    leastMicroUsd: 0,
    mostMicroUsd: 1e9,
    usesMax: 0,
    isForNew: false,
  }
  const nonce = randomUUID()
  const signed = {
    'x-nonce': nonce,
    'x-signature-type': String(signer.signatureType),
    'x-public-key': Buffer.from(signer.owner).toString('base64url'),
    'x-signature': Buffer.from(signer.sign(Buffer.from(nonce))).toString('base64url'),
  }
  const lease = 'type=lease&years=1'
  const item = (letter: string): string => `dataItemId=${letter.repeat(43)}`
  const other = '0x3333333333333333333333333333333333333333'
  const pair = `payingAddress=${wallet}&approvedAddress=${other}`
  const account = `ed25519/${wallet}`
  await calls(t, proxy, [
    [200, 'POST', '/admin/corrections', JSON.stringify(correction), { ...operator, ...json }],
    [200, 'GET', `/admin/credits/${wallet}`, undefined, operator],
    [404, 'GET', '/admin/credits/nobody', undefined, operator],
    [200, 'GET', `/admin/statements/${wallet}`, undefined, operator],
    [200, 'GET', `/v1/arns/price/buy-name/described?${lease}`],
    [200, 'GET', `/v1/arns/price/buy-name/described?${lease}&currency=usd`],
    [400, 'GET', '/v1/arns/price/buy-name/described?type=forever'],
    [200, 'GET', `/v1/arns/quote/checkout-session/${wallet}/usd/buy-name/quoted?${lease}`],
    [200, 'POST', `/v1/arns/purchase/buy-name/described?${lease}`, undefined, signed],
    [401, 'POST', `/v1/arns/purchase/buy-name/described?${lease}`],
    [200, 'GET', `/v1/arns/purchase/${nonce}`],
    [404, 'GET', '/v1/arns/purchase/nobody'],
    [200, 'GET', `/v1/arns/my-names/${wallet}`],
    [200, 'GET', '/v1/arns/actions/set-record/price'],
    [200, 'GET', `/v1/arns/actions/${nonce}`],
    [200, 'POST', `/v1/arns/actions/${nonce}/sign`],
    [401, 'POST', '/v1/arns/actions/set-record', '{}', json],
    [200, 'POST', '/v1/promotions', JSON.stringify(promotion), { ...service, ...json }],
    [200, 'GET', '/v1/outbox', undefined, service],
    [200, 'GET', '/v1/reconciliations', undefined, service],
    [200, 'POST', '/v1/reconciliations/2026-01-31', undefined, service],
    [200, 'GET', '/v1/price-of-item?byteCount=1000', undefined, service],
    [200, 'GET', `/v1/check-balance/${account}?byteCount=1000`, undefined, service],
    [404, 'GET', `/v1/check-balance/ethereum/${other}?byteCount=1000`, undefined, service],
    [200, 'GET', `/v1/reserve-balance/${account}?byteCount=1000&${item('R')}`, undefined, service],
    [200, 'GET', `/v1/settle-balance/${account}?${item('R')}`, undefined, service],
    [200, 'GET', `/v1/refund-balance/${account}?winstonCredits=1&${item('R')}`, undefined, service],
    [200, 'GET', `/v1/account/approvals/create?${item('C')}&winc=5&${pair}`, undefined, service],
    [200, 'GET', `/v1/account/approvals/revoke?${item('D')}&${pair}`, undefined, service],
    [200, 'POST', '/v1/x402/orders', '{"usdc":"units","given":1000}', { ...service, ...json }],
  ])
  const mine = await (await fetch(`${payment}/v1/arns/my-names/${wallet}`)).json()
  const [{ antId }] = (mine as { names: [{ antId: string }] }).names
  await calls(t, proxy, [
    [200, 'GET', `/v1/arns/held/${antId}`],
    [404, 'GET', `/v1/arns/held/${'A'.repeat(43)}`],
  ])
}
