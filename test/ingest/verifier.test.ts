import { randomBytes } from 'node:crypto'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { type Id, parseId } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { OpenedContent } from '../../src/source/reading/transfer-client.js'
import { signed } from '../devnet/posting.js'
import { eventually } from '../eventually.js'
import { drain, sha256, trail, upstream } from '../source/rig.js'
import { type Threads, threads } from '../source/threads.js'
import { bundleItem, bundleTags, item, weave } from '../source/weave.js'

async function get(house: Threads, id: Id, hints = {}): Promise<{ opened: OpenedContent; bytes: Buffer }> {
  const opened = await house.transfers.open({ id, hints, provenance: trail })
  if (isRefusal(opened)) throw new Error(`${opened.refused}: ${opened.message}`)
  const bytes = await drain(opened.content, 0, opened.content.sizeBytes)
  opened.content.close()
  return { opened, bytes }
}

t.test('cached content is checked against the chain', async (t) => {
  const { devnet, payer, post } = await weave(t)
  const bodies = new Map<string, { body: Uint8Array; headers?: Record<string, string> }>()
  const server = await upstream((request, response) => {
    const found = bodies.get(request.url?.replace('/raw/', '') ?? '')
    if (found === undefined) return void response.writeHead(404).end()
    response.writeHead(200, {
      'content-length': found.body.length,
      'content-type': 'text/liar',
      ...found.headers,
    })
    response.end(found.body)
  })
  t.teardown(() => server.close())
  const house = await threads(t, { gateways: [server.url], nodes: [devnet.url] })
  const proven = (id: Id): Promise<unknown> =>
    eventually(
      'the item is verified, and its height known',
      () =>
        house.catalog.attributes(id)?.verified === true && house.catalog.attributes(id)?.height !== undefined,
    )

  await t.test(
    'a transaction that a gateway sent becomes verified, with its header and height',
    async (t) => {
      const body = randomBytes(3_000_000)
      const id = await post(body, { 'Content-Type': 'image/png' })
      bodies.set(id, { body })
      const { opened, bytes } = await get(house, id)
      t.ok(bytes.equals(body))
      t.equal(opened.source, 'trusted-gateways')
      t.equal(opened.attributes.verified, false)
      await proven(id)
      const known = house.catalog.attributes(id)
      t.equal(known?.contentType, 'image/png', 'the tag wins over the gateway')
      t.equal(known?.height, 1)
      t.equal(known?.header?.ownerAddress, payer.address)
      t.equal(house.catalog.unsettled(undefined, 10).length, 0)
    },
  )

  await t.test('an item becomes verified where the gateway says which root holds it', async (t) => {
    const wanted = item(randomBytes(300_000), { 'Content-Type': 'text/css' })
    const inner = bundleItem([item(randomBytes(10)), wanted])
    const root = encodeBundle([item(randomBytes(100)), inner])
    const rootId = await post(root, bundleTags)
    bodies.set(wanted.id, { body: wanted.payload, headers: { 'x-ar-io-root-transaction-id': rootId } })
    await get(house, wanted.id)
    await proven(wanted.id)
    const known = house.catalog.attributes(wanted.id)
    t.equal(known?.place?.rootId, rootId)
    t.same(known?.place?.path, [rootId, inner.id])
    t.equal(known?.place?.rootItemOffset, Buffer.from(root).indexOf(wanted.bytes))
    t.equal(known?.place?.itemSize, wanted.bytes.length)
    t.equal(known?.contentType, 'text/css')
  })

  await t.test('wrong content is dropped, and proven content takes its place', async (t) => {
    const body = randomBytes(400_000)
    const lie = Buffer.from(body)
    lie[200_000]! ^= 1
    const id = await post(body)
    bodies.set(id, { body: lie })
    const { bytes } = await get(house, id)
    t.ok(bytes.equals(lie))
    await proven(id)
    t.equal(house.catalog.blobSize(sha256(lie)), undefined)
    t.same(house.catalog.attributes(id)?.digest, sha256(body))
    const again = await get(house, id)
    t.ok(again.bytes.equals(body))
    t.equal(again.opened.source, 'cache')
    t.equal(again.opened.attributes.verified, true)
  })

  await t.test('what is not mined yet waits for its block', async (t) => {
    const body = randomBytes(1000)
    const transaction = await signed(payer, { data: body })
    await payer.client.transactions.post(transaction)
    const id = parseId(transaction.id)!
    bodies.set(id, { body })
    await get(house, id)
    await pause(100)
    t.equal(house.catalog.attributes(id)?.verified, false)
    devnet.mine()
    await proven(id)
  })

  await t.test('an id that no root is known of stays unverified, and stays', async (t) => {
    const lone = item(randomBytes(2000))
    bodies.set(lone.id, { body: lone.payload })
    await get(house, lone.id)
    await eventually(
      'the content is stored',
      () => house.catalog.blobSize(sha256(lone.payload)) !== undefined,
    )
    await pause(200)
    t.equal(house.catalog.attributes(lone.id)?.verified, false)
    t.equal((await get(house, lone.id)).opened.source, 'cache')
  })

  await t.test('content out of chunks is verified at once', async (t) => {
    const body = randomBytes(900_000)
    const id = await post(body)
    const { opened, bytes } = await get(house, id)
    t.ok(bytes.equals(body))
    t.equal(opened.source, 'chunks-offset-aware')
    await eventually('the item is verified', () => house.catalog.attributes(id)?.verified)
    await proven(id)
  })

  await t.test('the check of a blob runs in the pool', async (t) => {
    const body = randomBytes(50_000)
    const id = await post(body)
    await get(house, id)
    await eventually('the content is stored', () => house.catalog.blobSize(sha256(body)))
    t.equal(await house.transfers.check(id, sha256(body)), true)
    t.equal(await house.transfers.check(id, randomBytes(32)), false)
  })
  await house.stop()
})

t.test('content is not called wrong while no node answers', async (t) => {
  const body = randomBytes(10_000)
  const server = await upstream((_, response) => response.end(body))
  const dead = await upstream(() => undefined)
  await dead.close()
  const house = await threads(t, { gateways: [server.url], nodes: [dead.url] })
  const id = item(body).id
  await get(house, id)
  await pause(200)
  t.equal(house.catalog.attributes(id)?.verified, false)
  t.equal((await get(house, id)).opened.source, 'cache')
  await house.stop()
  await server.close()
})
