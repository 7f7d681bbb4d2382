/** What strangers have stored makes no answer of the gateway dearer: reads of its databases for each route. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import type { Catalog } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import type { ItemInput } from '../../src/catalog/index-protocol.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { IndexedCatalog } from '../../src/catalog/indexed.js'
import { packJudged } from '../../src/catalog/judged-items.js'
import { packItems, packTransactions } from '../../src/catalog/pack.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { signedHeaders } from '../../src/client/signed-headers.js'
import { signerOfEd25519 } from '../../src/client/signer.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { gatewayDefaults } from '../../src/gateway/gateway-parts.js'
import { Guard } from '../../src/gateway/guard.js'
import { LocalNames } from '../../src/names/local-names.js'
import { LocalRegistry } from '../../src/names/local-registry.js'
import { parseName } from '../../src/names/name.js'
import { NameCache } from '../../src/names/name-cache.js'
import { NameMeters } from '../../src/names/name-meters.js'
import { nameOrderText } from '../../src/names/name-order.js'
import type { Name } from '../../src/names/names-port.js'
import { offsetsRoute } from '../../src/routes/offsets-route.js'
import { resolverRoute } from '../../src/routes/resolver-route.js'
import { setNameRoute } from '../../src/routes/set-name-route.js'
import { type Environment, openEnvironment } from '../../src/store/lmdb.js'
import { cacheOptions } from '../names/cache-options.js'
import { scratch } from '../scratch.js'
import { sha256, someId } from '../source/rig.js'
import { countedReads } from '../upload/counted-reads.js'
import { type Stage, stage } from './rig.js'

const many = 10_000
const idOf = (text: string): Id => idOfBytes(sha256(Buffer.from(text)))
const nothing = { mayBlockContent: false, mayBlockHashes: false, isReadable: true, version: 0 }
const blocks = {
  ...nothing,
  blocksDigest: () => false,
  mayBlockSize: () => false,
  blocksId: () => false,
  blocksName: () => false,
}

/** Opens databases whose reads are counted together. */
class Reads {
  readonly #counts: { readonly reads: number }[] = []

  get sum(): number {
    return this.#counts.reduce((sum, { reads }) => sum + reads, 0)
  }

  readonly count = (environment: Environment): Environment => {
    const counted = countedReads(environment)
    this.#counts.push(counted)
    return counted.environment
  }

  readonly open: typeof openEnvironment = (...given) => this.count(openEnvironment(...given))
}

const nameOf = (text: string): Name => {
  const name = parseName(text)
  if (name === undefined) throw new Error(text)
  return name
}

/** The names of a gateway that finds them on its own machine only: where they are read, and where they are set. */
function openNames(reads: Reads) {
  const path = join(scratch('names'), 'names')
  const registry = new LocalRegistry(path, undefined, reads.open)
  const local = new LocalNames(path, systemClock, reads.open)
  const cache = new NameCache(
    [local],
    local,
    cacheOptions,
    systemClock,
    new NameMeters(new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)),
  )
  const close = async (): Promise<void> => {
    cache.close()
    await Promise.all([registry.close(), local.close()])
  }
  return { registry, cache, close }
}

/** What is there in both cases. */
const known = {
  item: idOf('item 0'),
  name: nameOf('under_known'),
  site: someId(),
  content: someId(),
  body: randomBytes(3000),
}
const rootId = idOf('root')

/** Items that a stranger put into one bundle, `count` of them, and that were requested. */
async function storeItems({ rig: { keeper } }: Stage, count: number): Promise<void> {
  const owner = Buffer.alloc(512, 9)
  const of = { owner, ownerAddress: sha256(owner), target: Buffer.alloc(0), anchor: Buffer.alloc(0) }
  const root = { ...of, id: rootId, size: 10 ** 9, tags: [], index: 0, format: 2, quantity: 0n, reward: 1n }
  const [previous = '', id = ''] = [1, 2].map((at) => Buffer.alloc(48, at).toString('base64url'))
  const block = { height: 1000, id, previous, timestamp: 1_700_000_000, weaveSize: '0', transactionCount: 1 }
  const transactions = packTransactions([{ ...root, dataRoot: Buffer.alloc(32), weaveEnd: 0 }])
  await keeper.ask({ kind: 'index-block', block, transactions })
  const bundle = sha256(Buffer.from('bundle'))
  await keeper.ask({ kind: 'kept', digest: bundle, sizeBytes: 10 ** 9 })
  const items = Array.from({ length: count }, (_, at): ItemInput => {
    const place = { rootItemOffset: at * 1000, parentItemOffset: at * 1000, headerSize: 500 }
    return {
      ...of,
      id: idOf(`item ${at}`),
      size: 100,
      tags: [tagOf('A', `${at}`)],
      parentId: rootId,
      ...place,
    }
  })
  await keeper.ask({ kind: 'index-items', rootId, items: packItems(items) })
  const attributes = items.map(({ id, size, headerSize, rootItemOffset, parentItemOffset }): Attributes => {
    const place = { rootId, parentId: rootId, path: [rootId], rootItemOffset, parentItemOffset, headerSize }
    const digest = sha256(Buffer.from(`payload of ${id}`))
    return { id, size, digest, verified: false, trusted: true, place: { ...place, itemSize: 600 } }
  })
  await keeper.ask({ kind: 'learn', attributes })
  const judged = attributes.flatMap(({ id, digest, place }) =>
    digest && place ? [{ id, place, digest }] : [],
  )
  await keeper.ask({ kind: 'judged', bundle, items: packJudged(bundle, judged) })
  const requests = judged.map(
    ({ digest }) => ({ kind: 'kept', digest, sizeBytes: 100, isSmall: true }) as const,
  )
  await keeper.ask({ kind: 'all', requests })
}

async function costs(count: number): Promise<Map<string, number>> {
  const reads = new Reads()
  const { registry, cache, close } = openNames(reads)
  let catalog: IndexedCatalog | undefined
  const opened = (): IndexedCatalog => {
    if (catalog === undefined) throw new Error('not open yet')
    return catalog
  }
  const lazily: Catalog = {
    attributes: (id) => opened().attributes(id),
    blobSize: (digest) => opened().blobSize(digest),
    holder: (digest) => opened().holder(digest),
    judged: (...given) => opened().judged(...given),
    generation: (id) => opened().generation(id),
  }
  const guard = new Guard(blocks, lazily, 60)
  const saying = { vocabulary: vocabularies.neutral, clock: systemClock, log: silentLog }
  const clientOf = () => '192.0.2.1'
  const on = await stage({
    parts: { catalog: lazily },
    routes: [
      offsetsRoute({ ...saying, catalog: lazily, guard }),
      resolverRoute({ ...saying, names: cache, clientOf, self: gatewayDefaults, notFound: 'no-store' }),
      setNameRoute({
        pathPrefix: '/gateway',
        rootHosts: ['localhost'],
        registry: () => registry,
        guard,
        clock: systemClock,
        log: silentLog,
        clientOf,
      }),
    ],
  })
  const catalogPath = join(on.rig.path, 'catalog')
  const generations = new Generations()
  const { environment } = openCatalogTables(catalogPath, reads.open)
  catalog = new IndexedCatalog(catalogPath, generations, new ChainIndex(environment, generations), reads.open)
  await storeItems(on, count)
  await on.keep(known.content, known.body, { contentType: 'text/html' })
  const paths = Object.fromEntries(
    Array.from({ length: Math.min(count, 9000) }, (_, at) => [`page ${at}`, { id: known.content }]),
  )
  const site = JSON.stringify({
    manifest: 'arweave/paths',
    version: '0.2.0',
    index: { path: 'page 0' },
    paths,
  })
  await on.keep(known.site, Buffer.from(site), { contentType: 'application/x.arweave-manifest+json' })
  const record = { id: known.content, ttlSeconds: 60 }
  registry.set([[known.name, record]])
  registry.set(Array.from({ length: count }, (_, at) => [nameOf(`u${at}_known`), record]))
  const signer = await signerOfEd25519(Buffer.alloc(32, 5))
  registry.grant({ name: 'known', address: signer.address })
  // Each right is a commit of its own.
  for (let at = 0; at < Math.min(count, 500); at += 1)
    registry.grant({ name: `name${at}`, address: signer.address })
  const order = { record, gateway: new URL(on.url).host, timeMs: systemClock.now() }
  const setName = async (): Promise<number> => {
    const timed = { ...order, timeMs: systemClock.now() }
    const answer = await fetch(`${on.url}/gateway/names/${known.name.full}`, {
      method: 'PUT',
      body: JSON.stringify({ ...timed.record, gateway: timed.gateway, timeMs: timed.timeMs }),
      headers: await signedHeaders(signer, nameOrderText(known.name.full, timed)),
    })
    return answer.status
  }
  const digest = (bytes: Buffer): string => sha256(bytes).toString('base64url')
  const get =
    (path: string, headers = {}) =>
    async () =>
      (await on.ask(path, { headers })).status
  const requests: Record<string, readonly [status: number, ask: () => Promise<number>]> = {
    content: [200, get(`/${known.content}`)],
    raw: [200, get(`/raw/${known.content}`)],
    range: [206, get(`/raw/${known.content}`, { range: 'bytes=5-9' })],
    'an unknown id': [404, get(`/raw/${idOf('nothing')}`)],
    'an item whose bytes are nowhere': [404, get(`/raw/${known.item}`)],
    'an index page': [200, get(`/${known.site}/`)],
    'a path of a site': [200, get(`/${known.site}/page%200`)],
    'a path that is not listed': [404, get(`/${known.site}/nothing`)],
    'a digest': [200, get(`/gateway/digest/${digest(known.body)}`)],
    'an unknown digest': [404, get(`/gateway/digest/${digest(Buffer.from('nothing'))}`)],
    offsets: [200, get(`/gateway/offsets/${known.item}`)],
    'unknown offsets': [404, get(`/gateway/offsets/${idOf('nothing')}`)],
    'a name': [200, get(`/gateway/resolver/${known.name.full}`)],
    'an unknown name': [404, get('/gateway/resolver/nothing')],
    'setting a name': [200, setName],
  }
  const costs = new Map<string, number>()
  for (const [name, [status, ask]] of Object.entries(requests)) {
    const before = reads.sum
    t.equal(await ask(), status, `${name}, with ${count}`)
    costs.set(name, reads.sum - before)
  }
  await Promise.all([on.close(), catalog.close(), environment.close(), close()])
  return costs
}

t.test(`${many} items, names and rights of strangers make no answer dearer`, async (t) => {
  const [little, much] = [await costs(1), await costs(many)]
  t.comment(JSON.stringify([...much].map(([name, reads]) => [name, little.get(name), reads])))
  t.ok((much.get('content') ?? 0) > 0)
  t.strictSame(
    [...much].filter(([name, reads]) => reads > (little.get(name) ?? 0) * 1.5 + 1),
    [],
    'reads of the databases',
  )
})
