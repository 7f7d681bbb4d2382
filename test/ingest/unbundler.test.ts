import { randomBytes } from 'node:crypto'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { idBytes, idOfBytes } from '../../src/format/id.js'
import type { IngestParts } from '../../src/ingest/ingest-parts.js'
import { eventually } from '../eventually.js'
import { bundleItem, bundleTags, item, unsigned } from '../source/weave.js'
import { folder, type House, house, orders } from './house.js'
import { gatekeeper, settled, town } from './town.js'

function unbundling(heldMaxBytes: number): Partial<IngestParts> {
  const { unbundle } = orders('', '', new SharedArrayBuffer(0))
  return { unbundle: { ...unbundle, heldMaxBytes } }
}

function isIndexed({ index }: House, id: Parameters<typeof idBytes>[0]): boolean {
  index.refresh()
  return index.row(idBytes(id)) !== undefined
}

/** Bytes of data in all blocks of a node. */
async function weaveSize(url: string): Promise<number> {
  const block = (await (await fetch(`${url}/block/current`)).json()) as { weave_size: string }
  return Number(block.weave_size)
}

t.test('a bundle whose chunks cannot be had is tried again, also after a restart', async (t) => {
  const { devnet, bundle } = await town(t)
  const { root, items } = await bundle(4)
  devnet.mine(2)
  let closed = true
  const refuses = (path: string): boolean => closed && /^\/(chunk|tx\/.*\/data)/.test(path)
  const node = await gatekeeper(t, devnet.url, refuses)
  const path = folder(t)
  const first = house(t, node, {}, { path })
  await eventually('bundles are tried again', () => first.meters.total('bundles_retried_total') > 2)
  t.ok(isIndexed(first, root))
  t.equal(first.meters.total('bundles_retried_total') > 2, true)
  t.equal(items.filter((id) => isIndexed(first, id)).length, 0)
  await first.stop()
  closed = false
  const on = house(t, node, {}, { path })
  await eventually('the bundle is opened', () => on.meters.total('bundles_unbundled_total') === 1)
  t.ok(on.following.itemIndexedMs > 0, 'the health check knows of new items')
  await settled(on, devnet)
  t.equal(items.filter((id) => isIndexed(on, id)).length, items.length)
  t.equal(on.catalog.attributes(items[1]!)?.verified, false, 'its bytes were read, not kept')
  t.equal(on.catalog.attributes(items[1]!)?.height, 1)
})

t.test('bundles whose chunks nobody posts hold at most half of the places', async (t) => {
  const { devnet, bundle } = await town(t)
  const unseeded = await Promise.all(Array.from({ length: 6 }, () => bundle(2)))
  devnet.mine()
  const ends = await weaveSize(devnet.url)
  const places = new Set<string>()
  let isSilent = false
  const node = await gatekeeper(t, devnet.url, (path) => {
    const [, chunk, id] = /^\/chunk2?\/(\d+)|^\/tx\/([\w-]{43})\/data/.exec(path) ?? []
    const isUnseeded = id !== undefined || (chunk !== undefined && Number(chunk) <= ends)
    if (isUnseeded && isSilent) places.add(chunk ?? id ?? '')
    return isUnseeded && (isSilent ? 'silent' : true)
  })
  const on = house(t, node)
  const tries = (): number => on.meters.total('bundles_retried_total')
  await eventually('all have failed', () => tries() >= unseeded.length)
  isSilent = true
  await eventually('one is tried again', () => places.size > 0)
  const { root, items } = await bundle(2)
  devnet.mine()
  await eventually('the new bundle is opened', () => items.every((id) => isIndexed(on, id)))
  t.ok(isIndexed(on, root))
  t.equal(places.size, 1, 'of two places one is for bundles that failed')
})

t.test('of a bundle with a missing chunk only this chunk is requested until it is there', async (t) => {
  const { devnet, post } = await town(t)
  const items = Array.from({ length: 3 }, () => item(randomBytes(500_000)))
  await post(encodeBundle(items), bundleTags)
  devnet.mine()
  const end = await weaveSize(devnet.url)
  let isMissing = true
  const others = new Set<number>()
  const node = await gatekeeper(t, devnet.url, (path) => {
    const chunk = Number(/^\/chunk2?\/(\d+)/.exec(path)?.[1] ?? Number.NaN)
    const isLast = chunk > end - 200_000
    if (isMissing && chunk <= end - 200_000) others.add(chunk)
    return isMissing && (isLast || path.endsWith('/data'))
  })
  const { unbundle } = orders('', '', new SharedArrayBuffer(0))
  const on = house(t, node, { unbundle: { ...unbundle, retryMs: 200 } })
  await eventually('it is tried again', () => on.meters.total('bundles_retried_total') > 2)
  t.same([...others], [], 'nothing is read that would be read again')
  isMissing = false
  await eventually('it is opened', () => items.every(({ id }) => isIndexed(on, id)))
})

t.test('a malformed bundle is given up, and its indexed items stay', async (t) => {
  const { devnet, post } = await town(t)
  const good = item(randomBytes(10))
  const whole = Buffer.from(encodeBundle([good, item(randomBytes(5000))]))
  await post(randomBytes(1000), bundleTags)
  await post(whole.subarray(0, whole.length - 100), bundleTags)
  await post(encodeBundle([]), { ...bundleTags, 'Bundle-Version': '1.0.0' })
  devnet.mine()
  const on = house(t, devnet.url)
  await eventually('two bundles have failed', () => on.meters.total('bundles_failed_total') === 2)
  await settled(on, devnet)
  t.equal(on.meters.total('bundles_failed_total'), 2)
  t.equal(on.meters.total('bundles_unbundled_total'), 0, 'another version is no bundle')
  t.equal(on.following.bundlesWaiting, 0)
  t.equal(isIndexed(on, good.id), false, 'its header says more than there is: nothing of it is believed')
})

t.test('an item in two bundles stands where the chain has it first', async (t) => {
  const { devnet, post } = await town(t)
  const twice = item(randomBytes(10))
  const first = await post(encodeBundle([item(randomBytes(10)), twice]), bundleTags)
  devnet.mine()
  await post(encodeBundle([twice]), bundleTags)
  devnet.mine()
  const on = house(t, devnet.url)
  await settled(on, devnet)
  await eventually('two bundles are opened', () => on.meters.total('bundles_unbundled_total') === 2)
  on.index.refresh()
  t.equal(on.index.row(idBytes(twice.id))?.height, 1)
  t.equal(on.catalog.attributes(twice.id)?.place?.rootId, first)
})

for (const heldMaxBytes of [4_000_000, 8000]) {
  t.test(`nothing in an item with a bad signature is indexed; ${heldMaxBytes} bytes may wait`, async (t) => {
    const { devnet, post } = await town(t)
    const made = (count: number) => Array.from({ length: count }, () => item(randomBytes(20)))
    const [plain, kept, lost, deep, keptDeep] = [made(1), made(3), made(3), made(2), made(2)]
    const inner = bundleItem(deep)
    const falseInside = unsigned(bundleItem([...lost, inner]))
    const trueDeep = bundleItem(keptDeep)
    const trueOutside = bundleItem([...kept, falseInside, trueDeep])
    const falseOutside = unsigned(bundleItem([bundleItem([item(randomBytes(5))]), item(randomBytes(6))]))
    const root = await post(encodeBundle([...plain, falseOutside, trueOutside]), bundleTags)
    devnet.mine()
    const options = house(t, devnet.url, unbundling(heldMaxBytes))
    await eventually('the bundle is opened', () => options.meters.total('bundles_unbundled_total') === 1)
    await settled(options, devnet)
    const { index } = options
    index.refresh()
    const wanted = [...plain, ...kept, ...keptDeep, trueDeep, trueOutside].map(({ id }) => id)
    for (const id of wanted) t.ok(isIndexed(options, id), 'signed, and in nothing that is not')
    for (const { id } of [...lost, ...deep, inner, falseInside, falseOutside]) t.notOk(isIndexed(options, id))
    t.equal(index.counts().rows, wanted.length + 1, 'and nothing else but the root')
    for (const id of wanted) {
      const path = index.pathOf(index.row(idBytes(id))!)
      t.equal(path?.[0] && idOfBytes(path[0].id), root, 'every bundle around it is known')
    }
    t.equal(options.meters.total('data_items_bad_total'), 2)
    t.same(options.check().problems, [])
  })
}
