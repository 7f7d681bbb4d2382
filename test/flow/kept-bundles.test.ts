/**
 * Bundles that a whole program opens: which of them stay in its store (`ANS104_KEEP_FILTER`), and that their items are served out
 * of them, as they were judged when they were opened; also after kill -9.
 */
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import type { ItemPlace } from '../../src/catalog/attributes.js'
import { Generations } from '../../src/catalog/generations.js'
import { LmdbCatalog } from '../../src/catalog/reader.js'
import { bundleCountSize, bundleEntrySize, encodeBundle } from '../../src/format/bundle.js'
import { bundleTags, item, type MadeItem } from '../source/weave.js'
import { payerAt } from './payer.js'
import { until } from './published.js'
import { type Running, run } from './running.js'

interface Bundle {
  readonly items: readonly MadeItem[]
  readonly bytes: Uint8Array
  readonly digest: Buffer
}

function bundleOf(count: number): Bundle {
  const items = Array.from({ length: count }, (_, at) => item(randomBytes(3000 + 1000 * at)))
  const bytes = encodeBundle(items)
  return { items, bytes, digest: createHash('sha256').update(bytes).digest() }
}

/** Where the items of a bundle lie. */
function placesOf({ items }: Bundle): Pick<ItemPlace, 'rootItemOffset' | 'itemSize' | 'headerSize'>[] {
  let rootItemOffset = bundleCountSize + items.length * bundleEntrySize
  return items.map(({ bytes: { length: itemSize }, payload }) => {
    const place = { rootItemOffset, itemSize, headerSize: itemSize - payload.length }
    rootItemOffset += itemSize
    return place
  })
}

/** How many items of a bundle the catalog of a program knows as judged in it, and whether the bundle is in the store. */
async function known(dataPath: string, bundle: Bundle): Promise<{ judged: number; isKept: boolean }> {
  const catalog = new LmdbCatalog(join(dataPath, 'catalog'), new Generations())
  const places = placesOf(bundle)
  const digests = bundle.items.map(({ id }, at) => {
    const place = places[at]
    return place === undefined ? undefined : catalog.judged(bundle.digest, id, place)
  })
  const isKept = catalog.blobSize(bundle.digest) !== undefined
  await catalog.close()
  const judged = bundle.items.filter(({ payload }, at) => {
    const wanted = createHash('sha256').update(payload).digest()
    return Buffer.compare(wanted, digests[at] ?? Buffer.alloc(0)) === 0
  })
  return { judged: judged.length, isKept }
}

async function get({ urls }: Running, { id, payload }: MadeItem): Promise<string> {
  const answer = await fetch(`${urls.gateway}/${id}`)
  const isRight = Buffer.from(await answer.arrayBuffer()).equals(payload)
  const verified = answer.headers.get('x-ar-io-verified') ?? answer.headers.get('x-gateway-verified')
  return `${answer.status} ${isRight ? 'right' : 'wrong'} ${answer.headers.get('x-cache')} ${verified}`
}

/** Until the program has opened a bundle: its last item is found. */
async function isOpened({ urls }: Running, { items }: Bundle): Promise<void> {
  await until('a bundle is opened', async () => {
    const query = `{ transaction(id: "${items.at(-1)?.id}") { id } }`
    const body = JSON.stringify({ query })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${urls.gateway}/graphql`, { method: 'POST', headers, body })
    const found = (await answer.json()) as { data?: { transaction?: { id: string } | null } }
    return found.data?.transaction ?? undefined
  })
}

const quiet = { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0' }

t.test('a filter says which opened bundles stay, and their items are served out of them', async (t) => {
  const dataPath = join(t.testdir(), 'data')
  const filter = JSON.stringify({ tags: [{ name: 'App-Name', value: 'kept' }] })
  const settings = { ...quiet, ANS104_KEEP_FILTER: filter }
  const first = await run(t, dataPath, settings)
  const payer = await payerAt(first.urls.devnet ?? '')
  const [kept, passed] = [bundleOf(60), bundleOf(8)]
  await payer.post(kept.bytes, { ...bundleTags, 'App-Name': 'kept' })
  await payer.post(passed.bytes, { ...bundleTags, 'App-Name': 'other' })
  for (const bundle of [kept, passed]) await isOpened(first, bundle)
  t.same(await known(dataPath, kept), { judged: 60, isKept: true })
  t.same(await known(dataPath, passed), { judged: 0, isKept: false })
  for (const one of kept.items.slice(0, 30)) t.equal(await get(first, one), '200 right HIT true')
  for (const one of passed.items) t.match(await get(first, one), /^200 right MISS/)
  await first.kill()
  const second = await run(t, dataPath, settings)
  for (const one of kept.items) t.equal(await get(second, one), '200 right HIT true')
  t.equal(await second.stop(), 0)
})

t.test('none stays where the filter takes none, and all while there is room without one', async (t) => {
  for (const [filter, isKept] of [
    ['{"never":true}', false],
    [undefined, true],
  ] as const) {
    const dataPath = join(t.testdir({}), `data-${isKept}`)
    const settings = filter === undefined ? quiet : { ...quiet, ANS104_KEEP_FILTER: filter }
    const running = await run(t, dataPath, settings)
    const payer = await payerAt(running.urls.devnet ?? '')
    const bundle = bundleOf(5)
    await payer.post(bundle.bytes, bundleTags)
    await isOpened(running, bundle)
    t.same(await known(dataPath, bundle), { judged: isKept ? 5 : 0, isKept })
    for (const one of bundle.items)
      t.match(await get(running, one), isKept ? /^200 right HIT true/ : /^200 right/)
    t.equal(await running.stop(), 0)
  }
})
