import { randomBytes } from 'node:crypto'
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { run } from '../flow/running.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
const chunkBytes = 5_242_880
const settings = {
  SERVICES: 'gateway,upload',
  DEVNET_SEED: 'false',
  UPLOAD_FREE_ITEM_BYTES: '20000000',
  UPLOAD_FREE_WALLET_BYTES: '60000000',
}
const folder = t.testdir()
let program = await run(t, folder, settings)

/** Three parts: two whole ones and a rest. */
function itemOf(text: string): Buffer {
  const payload = Buffer.concat([Buffer.from(text), randomBytes(2 * chunkBytes + 1000)])
  return Buffer.from(signItem(signer, {}, payload))
}

function ask(path: string, method = 'GET', body?: Uint8Array): Promise<Response> {
  const headers = { 'content-type': 'application/octet-stream', 'x-chunking-version': '2' }
  const content = body === undefined ? {} : { body }
  return fetch(`${program.urls.upload}/v1/chunks/arweave/${path}`, { method, headers, ...content })
}

async function jsonOf(path: string): Promise<Record<string, unknown>> {
  return (await (await ask(path)).json()) as Record<string, unknown>
}

async function create(): Promise<string> {
  return String((await jsonOf(`-1/-1?chunkSize=${chunkBytes}`)).id)
}

function send(id: string, item: Uint8Array, offset: number): Promise<Response> {
  return ask(`${id}/${offset}`, 'POST', item.subarray(offset, offset + chunkBytes))
}

async function sendAll(id: string, item: Uint8Array): Promise<void> {
  const offsets = [2 * chunkBytes, chunkBytes, 0]
  const answers = await Promise.all(offsets.map((offset) => send(id, item, offset)))
  for (const answer of answers) t.equal(answer.status, 200)
}

async function served(id: unknown): Promise<Buffer> {
  return Buffer.from(await (await fetch(`${program.urls.gateway}/raw/${String(id)}`)).arrayBuffer())
}

function payloadOf(item: Buffer): Buffer {
  return item.subarray(item.length - (2 * chunkBytes + 1000))
}

async function ended(id: string): Promise<Record<string, unknown>> {
  return eventually('the upload is judged', async () => {
    const status = await jsonOf(`${id}/status`)
    return !['ASSEMBLING', 'VALIDATING', 'FINALIZING'].includes(String(status.status)) && status
  })
}

t.test('a new upload says its limits, and takes what clients may ask for', async (t) => {
  t.match(await jsonOf(`-1/-1?chunkSize=${chunkBytes}`), {
    min: chunkBytes,
    max: 524_288_000,
    chunkSize: chunkBytes,
  })
  t.match(await jsonOf('-1/-1'), { chunkSize: 25_000_000 })
  for (const size of ['5242879', '524288001', 'x', '', '5242880.5']) {
    const refused = await ask(`-1/-1?chunkSize=${size}`)
    t.equal(refused.status, 400)
    const code = 'SLC_MALFORMED'
    t.equal(refused.headers.get('x-error-code'), code)
    t.same(await refused.json(), { error: 'Invalid chunk size', min: chunkBytes, max: 524_288_000, code })
  }
})

t.test('parts in any order are one item, with one receipt', async (t) => {
  const item = itemOf('in any order')
  const id = await create()
  t.match(await jsonOf(`${id}/status`), { status: 'ASSEMBLING' })
  await sendAll(id, item)
  // Once more, and something else first: the last one counts.
  t.equal((await send(id, randomBytes(item.length), chunkBytes)).status, 200)
  t.equal((await send(id, item, chunkBytes)).status, 200)
  const chunks = [
    [0, chunkBytes],
    [chunkBytes, chunkBytes],
    [2 * chunkBytes, item.length - 2 * chunkBytes],
  ]
  t.match(await jsonOf(`${id}/-1`), { id, size: chunkBytes, chunks })
  const [first, second] = await Promise.all([ask(`${id}/-1`, 'POST'), ask(`${id}/-1`, 'POST')])
  t.equal(first.status, 200)
  const receipt = (await first.json()) as Record<string, unknown>
  t.same(await second.json(), receipt)
  t.match(receipt, { version: '0.2.0', winc: '0' })
  t.ok((await served(receipt.id)).includes(payloadOf(item)))
  t.same(await jsonOf(`${id}/status`).then(({ status, receipt }) => ({ status, receipt })), {
    status: 'FINALIZED',
    receipt,
  })
  const later = await ask(`${id}/finalize`, 'POST')
  t.equal(later.status, 200)
  t.same(await later.json(), receipt)
  t.equal((await send(id, item, 0)).status, 409)
  // The same item in one request, and in parts again: known.
  const single = await fetch(`${program.urls.upload}/v1/tx`, { method: 'POST', body: item })
  t.equal(single.status, 202)
  const again = await create()
  await sendAll(again, item)
  t.same(await (await ask(`${again}/-1`, 'POST')).json(), receipt)
})

t.test('what is no part of an upload is refused', async (t) => {
  const item = itemOf('refused')
  const id = await create()
  const cases: readonly (readonly [string, Uint8Array, number])[] = [
    [`${id}/1`, item.subarray(0, 10), 400],
    [`${id}/-5`, item.subarray(0, 10), 400],
    [`${id}/1e7`, item.subarray(0, 10), 400],
    [`${id}/${chunkBytes}`, new Uint8Array(0), 400],
    [`${id}/${10_000 * chunkBytes}`, item.subarray(0, 10), 400],
    [`${id}/${9000 * chunkBytes}`, item.subarray(0, 10), 413],
    ['nobody/0', item.subarray(0, 10), 404],
  ]
  for (const [path, body, status] of cases) t.equal((await ask(path, 'POST', body)).status, status, path)
  t.match(await jsonOf(`${id}/-1`), { chunks: [] })
  for (const path of ['nobody/-1', 'nobody/status']) {
    const unknown = await ask(path)
    t.equal(unknown.status, 404)
    t.equal(await unknown.text(), 'Multi-part upload with ID nobody not found!')
  }
  for (const word of ['-1', 'finalize']) t.equal((await ask(`nobody/${word}`, 'POST')).status, 404)
})

t.test('an upload with a hole is not finalized, and can be completed', async (t) => {
  const item = itemOf('a hole')
  const id = await create()
  for (const word of ['-1', 'finalize']) t.equal((await ask(`${id}/${word}`, 'POST')).status, 400)
  for (const offset of [0, 2 * chunkBytes]) t.equal((await send(id, item, offset)).status, 200)
  for (const word of ['-1', 'finalize']) {
    const early = await ask(`${id}/${word}`, 'POST')
    t.equal(early.status, 400)
    t.match(await early.text(), String(chunkBytes))
  }
  t.equal((await send(id, item, chunkBytes)).status, 200)
  t.equal((await ask(`${id}/finalize`, 'POST')).status, 202)
  t.match(await ended(id), { status: 'FINALIZED', receipt: { winc: '0' } })
})

t.test('an item with a false signature is invalid, and the status says why', async (t) => {
  const item = itemOf('changed')
  item[item.length - 1] = (item.at(-1) ?? 0) ^ 1
  const id = await create()
  await sendAll(id, item)
  t.equal((await ask(`${id}/finalize`, 'POST')).status, 202)
  t.match(await ended(id), { status: 'INVALID', reason: 'Invalid Data Item!' })
  t.match(await jsonOf(`${id}/-1`), { failedReason: 'INVALID', chunks: [] })
  const again = await ask(`${id}/-1`, 'POST')
  t.equal(again.status, 400)
  t.equal(await again.text(), 'Invalid Data Item!')
  t.equal((await send(id, item, 0)).status, 409)

  const noItem = await create()
  t.equal((await ask(`${noItem}/0`, 'POST', Buffer.alloc(100, 0xff))).status, 200)
  const answer = await ask(`${noItem}/-1`, 'POST')
  t.equal(answer.status, 400)
  t.match(await answer.text(), /^Data item parsing error!/)
})

t.test('an upload that is not paid is underfunded, and stays until it is paid', async (t) => {
  const item = Buffer.from(signItem(signer, {}, Buffer.alloc(20_500_000, 'large')))
  const id = await create()
  for (let offset = 0; offset < item.length; offset += chunkBytes) await send(id, item, offset)
  t.equal((await ask(`${id}/finalize`, 'POST')).status, 202)
  t.match(await ended(id), { status: 'UNDERFUNDED' })
  t.equal((await ask(`${id}/-1`, 'POST')).status, 402)
  t.match(await jsonOf(`${id}/-1`), { failedReason: 'UNDERFUNDED', chunks: [[0, chunkBytes]] })
})

t.test('a killed service goes on with what it has', async (t) => {
  const [begun, ordered] = [itemOf('begun'), itemOf('ordered')]
  const [first, second] = [await create(), await create()]
  for (const offset of [2 * chunkBytes, 0]) await send(first, begun, offset)
  await sendAll(second, ordered)
  t.equal((await ask(`${second}/finalize`, 'POST')).status, 202)
  await program.kill()
  program = await run(t, folder, settings)
  const status = await ended(second)
  t.match(status, { status: 'FINALIZED' })
  t.ok((await served((status.receipt as { id: string }).id)).includes(payloadOf(ordered)))
  t.match(await jsonOf(`${first}/-1`), {
    chunks: [
      [0, chunkBytes],
      [2 * chunkBytes, begun.length - 2 * chunkBytes],
    ],
  })
  await send(first, begun, chunkBytes)
  const receipt = (await (await ask(`${first}/-1`, 'POST')).json()) as { id: string }
  t.ok((await served(receipt.id)).includes(payloadOf(begun)))
  t.equal(await program.stop(), 0)
})
