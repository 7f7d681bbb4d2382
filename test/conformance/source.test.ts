import { randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { BlobRoots } from '../../src/source/roots/blob-roots.js'
import { chainSources } from '../../src/source/roots/chain-sources.js'
import { Parent } from '../../src/source/roots/parent.js'
import type { Source } from '../../src/source/source.js'
import { inOrder } from '../../src/source/upstream/in-order.js'
import { NetworkPeers } from '../../src/source/upstream/network-peers.js'
import { eventually } from '../eventually.js'
import { drain, gateways, rig, someId, sure, upstream } from '../source/rig.js'
import { bundleItem, bundleTags, item, weave } from '../source/weave.js'
import { conform } from './source.js'

const location = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }

t.test('trusted gateways', async (t) => {
  const payload = randomBytes(300_000)
  const id = someId()
  const server = await upstream((request, response) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
    if (request.url !== `/raw/${id}`) response.writeHead(404).end()
    else if (range === null) response.setHeader('x-gateway-verified', 'true').end(payload)
    else {
      const [start, end] = [Number(range[1]), Number(range[2])]
      if (end >= payload.length) return void response.writeHead(416).end()
      response.writeHead(206, {
        'x-gateway-verified': 'true',
        'content-length': end - start + 1,
        'content-range': `bytes ${start}-${end}/${payload.length}`,
      })
      response.end(payload.subarray(start, end + 1))
    }
  })
  const source = gateways([server.url])
  await t.test('alone', (t) => conform(t, { source, id, payload, proven: false }))
  const empty: Source = inOrder('nothing', [])
  const both = inOrder('both', [empty, source])
  await t.test('in order, behind a source that has nothing', (t) => {
    return conform(t, { source: both, id, payload, proven: false })
  })
  const line = {
    headMs: 10_000,
    stallMs: 10_000,
    hopsMax: 3,
    ownHosts: [],
    release: 'test',
    connectionsMax: 4,
  }
  const rules = {
    candidatesMax: 3,
    homesMax: 1,
    hedgeMs: 500,
    hedgedMax: 2,
    concurrentMax: 4,
    weightDelta: 2,
    rest: { failuresMax: 9, restMs: 1000, restMaxMs: 1000 },
  }
  const peers = new NetworkPeers({ ...line, ...rules, peers: [server.url] }, systemClock)
  await t.test('peers', (t) => conform(t, { source: peers, id, payload, proven: false }))
  await Promise.all([source.close(), peers.close()])
  await server.close()
})

t.test('sources that ask nodes', async (t) => {
  const { chain, post } = await weave(t)
  const { sources } = chainSources(chain, { aheadMax: 4, concurrencyMax: 8 }, location)
  const [chunks, aware, txData] = sources as [Source, Source, Source]
  const payload = randomBytes(900_000)
  const id = await post(payload, { 'Content-Type': 'x/y' })
  await t.test('chunks', (t) => conform(t, { source: chunks, id, payload, proven: true }))
  await t.test('transactions, aware of offsets', (t) => {
    return conform(t, { source: aware, id, payload, proven: true })
  })
  await t.test('tx data', (t) => conform(t, { source: txData, id, payload, proven: true }))

  const wanted = item(randomBytes(500_000), { 'Content-Type': 'image/png' })
  const inner = bundleItem([item(randomBytes(1000)), wanted, item(randomBytes(10))])
  const middle = bundleItem([item(randomBytes(40_000)), inner])
  const root = encodeBundle([item(randomBytes(20)), item(randomBytes(300_000)), middle])
  const rootId = await post(root, bundleTags)
  const itemOffset = Buffer.from(root).indexOf(wanted.bytes)
  const hinted = {
    'an item of which only the root is known': { rootId },
    'an item of which the path is known': { rootId, path: [rootId, middle.id, inner.id] },
    'an item of which the place is known': { rootId, itemOffset, itemSize: wanted.bytes.length },
    'an item of which a wrong place is said': { rootId, itemOffset: itemOffset + 1, itemSize: 2000 },
    'an item of which a wrong path is said': { rootId, path: [rootId, someId()] },
  }
  for (const [name, hints] of Object.entries(hinted)) {
    await t.test(name, (t) => {
      return conform(t, { source: aware, id: wanted.id, payload: wanted.payload, hints, proven: true })
    })
  }

  await t.test('an item in a root that is on disk', async (t) => {
    const house = await rig({ source: aware })
    const edge = house.edge()
    const content = edge.grow(sure(await edge.open(rootId)))
    t.ok((await drain(content, 0, root.length)).equals(root))
    content.close()
    await eventually('the content is kept', () => house.kept.length === 1)
    const roots = new BlobRoots(house.catalog, house.store, systemClock)
    t.teardown(() => roots.close())
    const parent = new Parent(roots, location)
    await conform(t, {
      source: parent,
      id: wanted.id,
      payload: wanted.payload,
      hints: { rootId },
      proven: true,
    })
    await house.close()
  })
})
