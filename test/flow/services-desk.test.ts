/** What operators ask of the upload and payment services: by their own ports, through the gateway, and by commands. */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { sha256 } from '../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { openUploadTables, Uploads } from '../../src/upload/records/uploads.js'
import { eventually } from '../eventually.js'
import { run, sluice } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 11))
const key = 'a-key-for-the-tests'
const headers = { authorization: `Bearer ${key}` }

type Json = Record<string, unknown>

/** Of an item that an Ed25519 key signed. */
function itemId(item: Uint8Array): Id {
  return idOfBytes(sha256(item.subarray(2, 66)))
}

async function answerOf(
  url: string,
  method = 'GET',
  body?: object,
): Promise<{ status: number; json: Json; text: string }> {
  const content = body === undefined ? {} : { body: JSON.stringify(body) }
  const answer = await fetch(url, { method, headers, ...content })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
  return { status: answer.status, json: isJson ? (JSON.parse(text) as Json) : {}, text }
}

async function post(upload: string, text: string): Promise<Json & { id: string }> {
  const answer = await fetch(`${upload}/tx`, {
    method: 'POST',
    body: signItem(signer, {}, Buffer.from(text)),
  })
  return (await answer.json()) as Json & { id: string }
}

const folder = t.testdir()
const settings = { DEVNET_SEED: 'false', ADMIN_API_KEY: key, DEVNET_BLOCK_MS: '600000' }
const program = await run(t, folder, settings)
const { upload = '', gateway = '', payment = '' } = program.urls

t.test('an operator sees uploads on their way, and has them packed and seeded again', async (t) => {
  for (const url of [`${upload}/admin/uploads`, `${payment}/admin/credits`])
    t.equal((await fetch(url)).status, 401, 'only with the key')
  const { id } = await post(upload, 'on its way')
  await fetch(`${upload}/upload`, {
    method: 'POST',
    headers: { 'upload-complete': '?0' },
    body: Buffer.alloc(5000),
  })
  const bundle = await eventually('the bundle is seeded', async () => {
    const { json } = await answerOf(`${gateway}/gateway/admin/uploads`)
    const [first] = json.bundles as { id: string; state: string }[]
    return first?.state === 'seeded' && first
  })
  const overview = (await answerOf(`${upload}/admin/uploads`)).json
  t.match(overview, {
    items: { kept: 1, waiting: 0 },
    open: { open: 1, bytes: 5000, uploads: [{ protocol: 'resumable', state: 'open', bytes: 5000 }] },
    bundles: [{ id: bundle.id, items: 1 }],
    unseen: { count: 0, bundles: [] },
    wallet: { address: /^[\w-]{43}$/ },
    free: { known: 1 },
  })
  t.match((await answerOf(`${gateway}/gateway/admin/uploads/${id}`)).json, {
    item: { id, bundle: bundle.id },
    bundle: { id: bundle.id },
  })
  t.equal((await answerOf(`${upload}/admin/uploads/${'A'.repeat(43)}`)).status, 404)
  const environment = { ...settings, DATA_PATH: folder }
  const command = (...words: string[]) => sluice(['uploads', ...words, '--upload', upload], environment)
  t.match(JSON.parse((await command('status')).out), { items: { kept: 1 } })
  t.match(await command('reseed', id), { code: 0, out: /sent again/ })
  await eventually('the page of the bundle shows that it is seeded', async () => {
    const { json } = await answerOf(`${upload}/admin/uploads/${bundle.id}`)
    return (json.bundle as Json).state === 'seeded'
  })
  t.match(await command('trust', id), { code: 1, err: /No bundle of it waits/ })
  t.match(await command('trust', 'all'), { code: 0, out: /^0 bundles/ })
  t.match(await command('reseed', 'all'), { code: 0, out: /0 bundles are sent again/ })
  t.match(await command('repack', bundle.id), { code: 0, out: /1 items of the bundle wait/ })
  const next = await eventually('the item is in another bundle', async () => {
    const { json } = await answerOf(`${upload}/admin/uploads/${id}`)
    const { bundle: now } = json.item as { bundle?: string }
    return now !== undefined && now !== bundle.id && now
  })
  t.match((await answerOf(`${upload}/admin/uploads/${bundle.id}`)).json, { bundle: { state: 'dropped' } })
  t.not(next, bundle.id)
  t.match(await command('repack', bundle.id), { code: 1, err: /dropped/ })
  t.match(await command('repack', 'A'.repeat(43)), { code: 3 })
  t.match(await command('status', id, 'more'), { code: 2 })
  t.match(await sluice(['uploads', 'status', '--upload', 'http://127.0.0.1:9'], environment), { code: 5 })

  const metrics = await (await fetch(`${upload}/metrics`)).text()
  for (const line of [
    /^upload_items_accepted_total\{[^}]*\} 1$/m,
    /^upload_bundles_total\{outcome="dropped"[^}]*\} 1$/m,
  ])
    t.match(metrics, line)
  await eventually('the metric of held parts', async () =>
    /^upload_parts_bytes\{[^}]*\} 5000$/m.test(await (await fetch(`${payment}/metrics`)).text()),
  )
})

t.test('balances are corrected by transfers with a reason, and statements say so', async (t) => {
  const admin = `${gateway}/gateway/admin`
  const wallet = '0x1111111111111111111111111111111111111111'
  const order = { key: 'correction-1', address: wallet, winc: '5000', note: 'a "gift", of ours' }
  t.equal((await answerOf(`${admin}/credits/${wallet}`)).status, 404)
  t.match(await answerOf(`${admin}/corrections`, 'POST', order), {
    status: 200,
    json: { message: /by 5000 winc/ },
  })
  t.match(await answerOf(`${admin}/corrections`, 'POST', order), {
    status: 200,
    json: { message: /was made before/ },
  })
  for (const wrong of [
    { ...order, winc: '6000' },
    { ...order, key: 'correction-2', winc: '-5001' },
    { ...order, key: 'correction-3', winc: '1.5' },
    { ...order, key: 'correction-4', note: ' ' },
    { ...order, key: 'correction-5', address: 'nobody' },
  ])
    t.equal((await answerOf(`${admin}/corrections`, 'POST', wrong)).status, 409, JSON.stringify(wrong))
  t.equal((await answerOf(`${admin}/corrections`, 'POST', { key: 'x' })).status, 400)
  const taken = { ...order, key: 'correction-6', winc: '-2000', note: '=too much' }
  t.equal((await answerOf(`${admin}/corrections`, 'POST', taken)).status, 200)
  t.match((await answerOf(`${admin}/credits/${wallet}`)).json, {
    wallet,
    balance: { winc: '3000' },
    rows: [
      { winc: '-2000', reason: 'correction', other: 'operator:corrections', state: 'done' },
      { winc: '5000' },
    ],
  })
  const csv = await fetch(`${admin}/statements/${wallet}`, { headers })
  t.match(csv.headers.get('content-type'), /^text\/csv/)
  const [head, first, second, rest] = (await csv.text()).split('\r\n')
  t.equal(head, 'time,sequence,id,reason,reference,other account,winc,state,note')
  t.match(
    first,
    /,correction:correction-6,correction,correction-6,operator:corrections,-2000,done,'=too much$/,
  )
  t.ok(second?.endsWith(',5000,done,"a ""gift"", of ours"'))
  t.equal(rest, '')
  const balance = await fetch(`${payment}/v1/account/balance/ethereum?address=${wallet}`)
  t.match(await balance.json(), { winc: '3000' })
  const { json } = await answerOf(`${admin}/credits`)
  t.match(json, {
    oracle: { source: 'fixed', usd: { ar: 6.25 } },
    accounts: [{ name: 'operator:corrections', winc: '-3000' }],
  })
  await eventually('both corrections are counted', async () =>
    /^payment_corrections_total\{[^}]*\} 2$/m.test(await (await fetch(`${payment}/metrics`)).text()),
  )
})

t.test('the program ends when it is told to', async (t) => {
  t.equal(await program.stop(), 0)
})

t.test('services that run alone have their numbers, and their orders', async (t) => {
  const folder = t.testdir()
  for (const service of ['upload', 'payment'] as const) {
    const { urls } = await run(t, `${folder}/${service}`, { SERVICES: service, ADMIN_API_KEY: key })
    const base = urls[service] ?? ''
    const text = await (await fetch(`${base}/metrics`)).text()
    t.match(text, /^sluice_build_info\{/m)
    t.match(text, /^http_requests_total\{/m)
    const path = service === 'upload' ? 'uploads' : 'credits'
    t.equal((await answerOf(`${base}/admin/${path}`)).status, 200)
  }
})

t.test('receivers are told of receipts, and of items that are permanent', async (t) => {
  const reported: { body: string; headers: Record<string, unknown> }[] = []
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    reported.push({ body: Buffer.concat(pieces).toString(), headers: request.headers })
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const secret = Buffer.alloc(32, 5)
  const { urls } = await run(t, t.testdir(), {
    SERVICES: 'gateway,upload',
    DEVNET_BLOCK_MS: '300',
    WEBHOOK_TARGET_SERVERS: `http://127.0.0.1:${(server.address() as { port: number }).port}/`,
    WEBHOOK_SECRET: `whsec_${secret.toString('base64')}`,
    WEBHOOK_EMIT_UPLOAD_EVENTS: 'true',
  })
  const receipt = await post(urls.upload ?? '', 'told of')
  const events = () => reported.map(({ body }) => JSON.parse(body) as { event: string; data: Json })
  const accepted = await eventually('the receipt is reported', () =>
    events().find(({ event }) => event === 'upload-accepted'),
  )
  const { dataCaches: _, fastFinalityIndexes: __, ...signed } = receipt
  t.match(accepted.data.receipt, signed)
  const permanent = await eventually('the permanence is reported', () =>
    events().find(({ event }) => event === 'upload-permanent'),
  )
  t.match(permanent.data, { id: receipt.id, root_tx_id: /^[\w-]{43}$/ })
  const [{ body, headers: lines }] = reported as [(typeof reported)[number]]
  const text = `${lines['webhook-id']}.${lines['webhook-timestamp']}.${body}`
  t.equal(lines['webhook-signature'], `v1,${createHmac('sha256', secret).update(text).digest('base64')}`)
})

t.test('what was given up is tried again when it is uploaded again', async (t) => {
  const folder = t.testdir()
  const slow = { SERVICES: 'gateway,upload', UPLOAD_BUNDLE_WAIT_SECONDS: '3600' }
  const first = await run(t, folder, slow)
  const { id, signature } = await post(first.urls.upload ?? '', 'given up')
  t.equal(await first.stop(), 0)
  const environment = openUploadTables(`${folder}/uploads`)
  const uploads = new Uploads(environment)
  const item = uploads.find(id as Id)
  if (item === undefined) throw new Error('the item is not kept')
  environment.write(() => {
    uploads.unqueue(item)
    uploads.put({ ...item, failures: 10, reason: 'no node takes it' })
  })
  await environment.close()
  const { urls, stop } = await run(t, folder, {
    ...slow,
    UPLOAD_BUNDLE_WAIT_SECONDS: '0',
    DEVNET_BLOCK_MS: '300',
  })
  const { upload = '' } = urls
  const status = async (): Promise<Json> => (await (await fetch(`${upload}/tx/${id}/status`)).json()) as Json
  t.match(await status(), { status: 'FAILED', reason: 'no node takes it' })
  const again = await post(upload, 'given up')
  t.match(again, { id, signature }, 'the same receipt')
  const now = await status()
  t.match(now, { status: /^(CONFIRMED|FINALIZED)$/ })
  t.notOk('reason' in now)
  await eventually('the item is permanent', async () => (await status()).status === 'FINALIZED')
  t.equal(await stop(), 0)
})

t.test('a sandbox takes more for free, posts nothing, and forgets', async (t) => {
  const { urls } = await run(t, t.testdir(), {
    SERVICES: 'gateway,upload',
    ADMIN_API_KEY: key,
    DEVNET_BLOCK_MS: '300',
    UPLOAD_SANDBOX: 'true',
    UPLOAD_SANDBOX_KEEP_SECONDS: '8',
  })
  const { upload = '', gateway = '' } = urls
  t.match(await (await fetch(`${upload}/info`)).json(), {
    freeUploadLimitBytes: 5_242_880,
    freeTier: { lifetimeBytes: 104_857_600 },
    limits: { maxItemBytes: 10_485_760 },
    sandbox: { keepSeconds: 8 },
  })
  const first = await post(upload, 'x'.repeat(5_000_000))
  const { id } = first
  t.equal((await fetch(`${gateway}/raw/${id}`, { method: 'HEAD' })).status, 200)
  const nested = signItem(signer, {}, Buffer.from('in a bundle'))
  const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
  const inside = itemId(nested)
  const bundle = signItem(signer, { tags }, encodeBundle([{ id: inside, bytes: nested }]))
  t.equal((await fetch(`${upload}/tx`, { method: 'POST', body: bundle })).status, 200)
  const read = async (): Promise<string | number> => {
    const answer = await fetch(`${gateway}/raw/${inside}`)
    const text = await answer.text()
    return answer.status === 200 ? text : answer.status
  }
  await eventually('the item is served', async () => (await read()) === 'in a bundle')
  const indexed = async (id: string): Promise<boolean> => {
    const query = `{ transaction(id: "${id}") { id } }`
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${gateway}/graphql`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ query }),
    })
    const reported = (await answer.json()) as { data: { transaction: object | null } }
    return reported.data.transaction !== null
  }
  t.ok(await indexed(id), 'queries find it while it is kept')
  await eventually('the inner item is in the index', () => indexed(inside))
  const large = await fetch(`${upload}/tx`, { method: 'POST', body: Buffer.alloc(10_485_761) })
  t.equal(large.status, 413)
  const status = await eventually('the item has failed', async () => {
    const reported = (await (await fetch(`${upload}/tx/${id}/status`)).json()) as Json
    return reported.status === 'FAILED' && reported
  })
  t.match(status, { reason: /sandbox/ })
  t.notOk('bundleId' in status)
  await eventually('the item has left the index', async () => !(await indexed(id)))
  t.not((await fetch(`${gateway}/raw/${id}`)).status, 200, 'and it is not served any more')
  await eventually('the inner item has left the index', async () => !(await indexed(inside)))
  t.equal(await read(), 404, 'nor is what lay in it')
  t.same((await answerOf(`${upload}/admin/uploads`)).json.bundles, [])
  const anew = await post(upload, 'x'.repeat(5_000_000))
  t.equal(anew.id, id)
  t.ok(Number(anew.timestamp) > Number(first.timestamp), 'it is taken anew')
})
