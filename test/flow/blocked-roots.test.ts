/** A block holds for all that lies in the blocked data, whoever names the place, before and after the block. */
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { item } from '../source/weave.js'
import { payerAt } from './payer.js'
import { run } from './running.js'
import { upstream } from './upstream.js'

const key = 'a-key-for-the-tests'
/** What each gateway answers: bytes, and the root that it states for them. */
const served = new Map<string, { readonly bytes: Buffer; readonly root?: string }>()
const lies = new Map<string, string>()

const honest = await upstream(t, (id, _, response) => {
  const found = served.get(id)
  if (found === undefined) response.writeHead(404).end()
  else {
    const root = found.root === undefined ? {} : { 'x-gateway-root-transaction-id': found.root }
    response.writeHead(200, { 'content-length': found.bytes.length, ...root }).end(found.bytes)
  }
})
/** A stranger: states for anything that it lies in what the operator has blocked. */
const stranger = await upstream(t, (id, _, response) => {
  const root = lies.get(id)
  const bytes = served.get(id)?.bytes
  if (root === undefined || bytes === undefined) response.writeHead(404).end()
  else
    response
      .writeHead(200, { 'content-length': bytes.length, 'x-gateway-root-transaction-id': root })
      .end(bytes)
})

const program = await run(t, t.testdir(), {
  DEVNET_SEED: 'false',
  SERVICES: 'gateway',
  ADMIN_API_KEY: key,
  TRUSTED_GATEWAYS_URLS: JSON.stringify({
    [stranger.url]: { priority: 1, trusted: false },
    [honest.url]: { priority: 2, trusted: true },
  }),
})
const { gateway = '', devnet = '' } = program.urls
const payer = await payerAt(devnet)

async function block(id: string): Promise<void> {
  const answer = await fetch(`${gateway}/gateway/admin/block-data`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ id, notes: 'a test', source: 'tests' }),
  })
  if (!answer.ok) throw new Error(await answer.text())
}

async function statusOf(id: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const answer = await fetch(`${gateway}/raw/${id}`, { headers })
  await answer.arrayBuffer()
  return answer.status
}

/** An item inside of data that is no bundle, and what names its place. */
async function hidden() {
  const made = item(randomBytes(3000), { 'Content-Type': 'text/plain' })
  const before = randomBytes(5000)
  const root = await payer.post(Buffer.concat([before, made.bytes, randomBytes(100)]), {})
  const hints = {
    'x-gateway-root-transaction-id': root,
    'x-gateway-root-item-offset': String(before.length),
    'x-gateway-root-item-size': String(made.bytes.length),
  }
  return { root, id: made.id, hints }
}

t.test('an item whose place is named by its reader', async (t) => {
  const { root, id, hints } = await hidden()
  await block(root)
  t.equal(await statusOf(root), 451)
  t.equal(await statusOf(id, hints), 451)
  t.equal(await statusOf(id, { ...hints, range: 'bytes=0-50' }), 451)
  t.not(await statusOf(id), 200)
})

t.test('an item that was served before its root was blocked', async (t) => {
  const { root, id, hints } = await hidden()
  t.equal(await statusOf(id, hints), 200)
  t.equal(await statusOf(id), 200)
  await block(root)
  t.equal(await statusOf(id), 451)
  t.equal(await statusOf(id, hints), 451)
})

t.test('an item whose root another gateway states', async (t) => {
  const { root } = await hidden()
  await block(root)
  const [inside, elsewhere] = [randomBytes(3000), randomBytes(2_000_000)].map((bytes) => {
    const id = createHash('sha256').update(bytes).digest('base64url')
    served.set(id, { bytes, root })
    return id
  })
  t.equal(await statusOf(inside ?? ''), 451)
  t.equal(await statusOf(elsewhere ?? ''), 451)
  t.equal(await statusOf(elsewhere ?? '', { range: 'bytes=1000000-1000010' }), 451)
})

t.test('a stranger cannot have anything blocked by what it states', async (t) => {
  const { root } = await hidden()
  await block(root)
  const bytes = randomBytes(3000)
  const id = createHash('sha256').update(bytes).digest('base64url')
  served.set(id, { bytes })
  lies.set(id, root)
  t.equal(await statusOf(id), 200)
  t.ok(stranger.requested.includes(id))
})
