import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { createSigner } from '../../src/attest/answer-signature.js'
import { loadSigningKey } from '../../src/attest/keys.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { offsetsRoute } from '../../src/routes/offsets-route.js'
import { verifiedByFirst, verifiedBySecond } from '../attest/verifiers.js'
import { freshened, stage } from '../gateway/rig.js'

const [item, root, parent, transaction] = Array.from({ length: 4 }, () => idOfBytes(randomBytes(32))) as [
  Id,
  Id,
  Id,
  Id,
]

const known: readonly Attributes[] = [
  {
    id: item,
    size: 1000,
    contentType: 'text/x',
    verified: true,
    trusted: true,
    place: {
      rootId: root,
      parentId: parent,
      path: [root, parent],
      rootItemOffset: 5000,
      parentItemOffset: 200,
      itemSize: 1300,
      headerSize: 300,
    },
  },
  { id: transaction, size: 5, verified: true, trusted: true },
]

t.test(
  'the place of an item is answered, signed; transactions and unknown ids have no offsets',
  async (t) => {
    const key = loadSigningKey({ keyFile: join(t.testdir(), 'key.pem') })
    const route = offsetsRoute({
      vocabulary: vocabularies.neutral,
      signer: createSigner(key, { bindRequest: true }),
      clock: systemClock,
      log: silentLog,
      catalog: { attributes: (id) => known.find((one) => one.id === id) },
    })
    const gateway = await stage({ routes: [route] })
    t.teardown(() => gateway.close())
    const path = `/gateway/offsets/${item}`
    const answer = await gateway.ask(path)
    t.equal(answer.status, 200)
    t.strictSame(JSON.parse(answer.body.toString()), {
      rootTxId: root,
      path: [root, parent],
      rootOffset: 5000,
      rootDataOffset: 5300,
      contentType: 'text/x',
      size: 1300,
      dataSize: 1000,
    })
    t.equal(answer.headers['cache-control'], 'public, max-age=30')
    t.equal(answer.headers['x-gateway-root-transaction-id'], root)
    const digest = createHash('sha256').update(answer.body).digest('base64')
    t.equal(answer.headers['content-digest'], `sha-256=:${digest}:`)
    t.match(answer.headers['signature-input'], /"x-gateway-root-transaction-id"/)
    const exchange = { method: 'GET', url: gateway.url + path, status: 200, fields: answer.fields }
    t.ok(await verifiedByFirst(exchange))
    t.ok(await verifiedBySecond(exchange))
    for (const wish of [answer.headers.etag ?? '', '*', `"other", W/${answer.headers.etag}`]) {
      const again = await gateway.ask(path, { headers: { 'if-none-match': wish } })
      t.match(again, {
        status: 304,
        headers: { etag: answer.headers.etag, 'cache-control': 'public, max-age=30' },
      })
      t.equal(again.body.length, 0)
      t.equal(again.headers['content-digest'], undefined)
      t.notOk('signature' in again.headers)
      t.ok(await verifiedByFirst({ ...exchange, fields: freshened(answer, again).fields }))
    }
    t.equal((await gateway.ask(path, { headers: { 'if-none-match': '"other"' } })).status, 200)
    const head = await gateway.ask(path, { method: 'HEAD' })
    t.equal(head.headers['content-length'], String(answer.body.length))

    for (const id of [transaction, parent]) {
      const missing = await gateway.ask(`/gateway/offsets/${id}`)
      t.equal(missing.status, 404)
      t.equal(missing.body.toString(), 'Offsets not found')
      t.equal(missing.headers['cache-control'], 'public, max-age=60, must-revalidate')
      t.equal(missing.headers.signature, undefined)
    }
    for (const wrong of ['x', `${item}x`, `${item.slice(0, 42)}/`, '']) {
      const answer = await gateway.ask(`/gateway/offsets/${wrong}`)
      t.equal(answer.status, 400)
      t.equal(answer.body.toString(), 'Must provide a valid data ID')
    }
  },
)

t.test('a place that only a band knows is answered with the fields that the band has', async (t) => {
  const bytes = (id: Id): Buffer => Buffer.from(id, 'base64url')
  const places = new Map([
    [item, { path: [bytes(root), bytes(parent)], itemOffset: 100, dataOffset: 400, itemSize: 1000 }],
    [parent, { path: [bytes(root)] }],
  ])
  const route = offsetsRoute({
    vocabulary: vocabularies.neutral,
    clock: systemClock,
    log: silentLog,
    catalog: { attributes: () => undefined },
    bands: { here: (id) => places.get(id) },
  })
  const gateway = await stage({ routes: [route] })
  t.teardown(() => gateway.close())
  const offsetsOf = async (id: Id): Promise<unknown> => {
    const { status, body } = await gateway.ask(`/gateway/offsets/${id}`)
    return status === 200 ? JSON.parse(body.toString()) : status
  }
  const inner = { rootTxId: root, path: [root, parent], rootOffset: 100, rootDataOffset: 400 }
  t.strictSame(await offsetsOf(item), { ...inner, size: 1000, dataSize: 700 })
  t.strictSame(await offsetsOf(parent), { rootTxId: root })
  t.equal(await offsetsOf(transaction), 404)
})
