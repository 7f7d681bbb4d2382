import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Admission, Charge } from '../../src/admission/admission-port.js'
import { createSigner } from '../../src/attest/answer-signature.js'
import { OfferReader } from '../../src/bands/band-offer.js'
import { bandBlobPath } from '../../src/bands/blob-path.js'
import { verifyPublication } from '../../src/bands/document.js'
import { bandTorrentName } from '../../src/bands/index-names.js'
import { ownDomain, type PublicationDocument } from '../../src/bands/publication.js'
import { isRefusal } from '../../src/format/refusal.js'
import { Guard } from '../../src/gateway/guard.js'
import type { BlockList } from '../../src/moderation/moderation-messages.js'
import { aboutIndexes } from '../../src/routes/index-routes.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { verifiedByFirst, verifiedBySecond } from '../attest/verifiers.js'
import { house, shelveBand, span } from '../bands/root-band-rig.js'
import { caller } from '../gateway/caller.js'
import { stage } from '../gateway/rig.js'

/** A clock whose beliefs are over at once: what is on disk is seen by the next request. */
function impatient() {
  let now = 0
  const tick = (): number => {
    now += 10_000
    return now
  }
  return { ...systemClock, monotonic: tick }
}

interface Choices {
  readonly admission?: Admission
  readonly guard?: Guard
  /** This gateway's address, where its host is set. */
  readonly origin?: string
  /** Those that stand in .torrent files as they are stored; absent: there are no torrents. */
  readonly trackers?: readonly string[]
}

async function open(t: Test, { admission, guard, origin, trackers }: Choices = {}) {
  const built = await house(trackers === undefined ? {} : { trackers })
  const folder = await shelveBand(built.bandStore, 'd-h0-tip-11aa22bb-0123456789ab', span(0, 40))
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 28, filesMax: 600, believeMs: 0 }, systemClock)
  const offers = new OfferReader(built.bandStore.root, impatient())
  const gateway = await stage({
    parts: {
      signer: createSigner(built.key, { bindRequest: true }),
      offered: { offers, files, ...(origin === undefined ? {} : { origin }) },
      ...(admission === undefined ? {} : { admission }),
      ...(guard === undefined ? {} : { guard }),
    },
  })
  t.teardown(async () => {
    await gateway.close()
    files.close()
  })
  return { ...built, folder, offers, gateway }
}

const base = '/gateway/indexes'
const bandPath = `${base}/root-tx-index/d-h0-tip-11aa22bb-0123456789ab`

t.test('before anything is published there is 404; then the document with both signatures', async (t) => {
  const { gateway, publisher, key, offers } = await open(t)
  const none = await gateway.ask(base)
  t.strictSame([none.status, none.body.toString(), none.headers['cache-control']], [404, '{}', 'no-store'])
  t.equal(aboutIndexes(offers, '/gateway', Date.now()), undefined)
  await publisher.publish()
  const answer = await gateway.ask(base)
  t.equal(answer.status, 200)
  t.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  t.equal(answer.headers['cache-control'], 'public, max-age=60')
  t.equal(answer.headers['x-gateway-index-publication'], '1')
  const digest = createHash('sha256').update(answer.body)
  const hex = digest.copy().digest('hex')
  t.equal(answer.headers.etag, `"${hex}"`)
  t.equal(answer.headers['content-digest'], `sha-256=:${digest.digest('base64')}:`)
  const exchange = { method: 'GET', url: gateway.url + base, status: 200, fields: answer.fields }
  t.ok(await verifiedByFirst(exchange))
  t.ok(await verifiedBySecond(exchange))
  t.match(answer.headers['signature-input'], /"x-gateway-index-publication"/)
  const expected = { keyIds: [key.solanaAddress], domains: [ownDomain], sequenceMin: 1 }
  t.notOk(isRefusal(verifyPublication(answer.body, expected)))
  const same = await gateway.ask(base, { headers: { 'if-none-match': `"${hex}"` } })
  t.strictSame([same.status, same.body.length], [304, 0])
  const head = await gateway.ask(base, { method: 'HEAD' })
  t.equal(head.headers['content-length'], String(answer.body.length))
  t.strictSame(aboutIndexes(offers, '/gateway', Date.now()), {
    manifestUrl: '/gateway/indexes',
    names: ['root-tx-index'],
  })
  t.equal(aboutIndexes(offers, '/gateway', Date.now() + 2 * 86_400_000), undefined, 'not beyond its time')
})

t.test('files by name, by digest and as a WebSeed are the bytes that the document names', async (t) => {
  const { gateway, publisher, folder } = await open(t)
  await publisher.publish()
  const { indexes } = JSON.parse((await gateway.ask(base)).body.toString()) as PublicationDocument
  const files = indexes[0]?.bands[0]?.files ?? []
  t.strictSame(
    files.map(({ name }) => name),
    readdirSync(folder).sort(),
  )
  const seed = bandTorrentName(files)
  for (const file of files.slice(0, 3)) {
    const bytes = readFileSync(join(folder, file.name))
    for (const [path, caching] of [
      [`${bandPath}/${file.name}`, 'public, no-cache'],
      [`${base}/blob/${file.sha256}`, 'public, max-age=31536000, immutable'],
      [`${base}/webseed/${seed}/${file.name}`, 'public, max-age=31536000, immutable'],
    ] as const) {
      const answer = await gateway.ask(path)
      t.equal(answer.status, 200, path)
      t.ok(answer.body.equals(bytes))
      t.equal(answer.headers['cache-control'], caching)
      t.equal(answer.headers['content-type'], 'application/octet-stream')
      t.equal(answer.headers['accept-ranges'], 'bytes')
      t.equal(answer.headers.etag, `"${file.sha256}"`)
      t.equal(answer.headers['x-gateway-index-file'], file.sha256)
      const digest = `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`
      t.strictSame([answer.headers['content-digest'], answer.headers['repr-digest']], [digest, digest])
      const exchange = { method: 'GET', url: gateway.url + path, status: 200, fields: answer.fields }
      t.ok(await verifiedByFirst(exchange))
    }
  }
})

t.test('every form of range', async (t) => {
  const { gateway, publisher, folder } = await open(t)
  await publisher.publish()
  const name = readdirSync(folder)[0] ?? ''
  const bytes = readFileSync(join(folder, name))
  const size = bytes.length
  const ask = (range: string, more: Record<string, string> = {}) =>
    gateway.ask(`${bandPath}/${name}`, { headers: { range, ...more } })
  for (const [range, start, end] of [
    ['bytes=0-0', 0, 1],
    ['bytes=10-99', 10, 100],
    ['bytes=-16', size - 16, size],
    [`bytes=${size - 1}-`, size - 1, size],
    [`bytes=4096-99999999999`, 4096, size],
  ] as const) {
    const answer = await ask(range)
    t.equal(answer.status, 206, range)
    t.ok(answer.body.equals(bytes.subarray(start, end)))
    t.equal(answer.headers['content-range'], `bytes ${start}-${end - 1}/${size}`)
    t.equal(answer.headers['content-digest'], undefined, 'the digest is of the whole')
    t.match(answer.headers['repr-digest'], createHash('sha256').update(bytes).digest('base64'))
    const exchange = {
      method: 'GET',
      url: `${gateway.url}${bandPath}/${name}`,
      status: 206,
      fields: answer.fields,
    }
    t.ok(await verifiedBySecond(exchange))
  }
  t.ok((await ask('bytes=0-1,4-5')).body.equals(bytes), 'several ranges get all')
  t.equal((await ask('bytes=5-2')).status, 400)
  t.equal((await ask('bytes=x')).status, 400)
  const beyond = await ask(`bytes=${size}-`)
  t.strictSame([beyond.status, beyond.headers['content-range']], [416, `bytes */${size}`])
  t.equal(beyond.headers['cache-control'], 'no-store')
  t.equal(beyond.headers['x-gateway-index-file'], undefined)
  t.equal((await ask('pages=1-2')).status, 200)
  const tag = String((await ask('bytes=0-1')).headers.etag)
  t.equal((await ask('bytes=0-1', { 'if-none-match': tag })).status, 304)
  t.equal((await ask('bytes=0-1', { 'if-range': tag })).status, 206)
  t.equal((await ask('bytes=0-1', { 'if-range': '"other"' })).status, 200)
})

t.test('every range of a file is its own, until the file is no longer offered', async (t) => {
  const { gateway, publisher, folder, bandStore } = await open(t)
  await publisher.publish()
  const name = readdirSync(folder)[0] ?? ''
  const bytes = readFileSync(join(folder, name))
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const ask = caller(t, gateway)
  for (const path of [`${bandPath}/${name}`, `${base}/blob/${sha256}`]) {
    const made = await gateway.ask(path, { headers: { range: 'bytes=0-9' } })
    for (let turn = 0; turn < 20; turn += 1) {
      const start = (turn * 7) % (bytes.length - 100)
      const got = await ask(path, { headers: { range: `bytes=${start}-${start + 99}` } })
      t.equal(got.status, 206)
      t.ok(got.body.equals(bytes.subarray(start, start + 100)))
      t.equal(got.headers['content-range'], `bytes ${start}-${start + 99}/${bytes.length}`)
      for (const field of ['etag', 'repr-digest', 'cache-control', 'x-gateway-index-file'])
        t.equal(got.headers[field], made.headers[field], field)
    }
  }
  t.equal(gateway.meters.total('contiguous_data_cache_hit_total'), 0, 'a band is no cached content')
  const path = `${base}/blob/${sha256}`
  t.equal((await ask(path)).status, 200)
  rmSync(join(bandStore.root, 'own'), { recursive: true })
  await publisher.publish()
  t.equal((await ask(path)).status, 404)
})

t.test('files that are not offered are 404 under every path', async (t) => {
  const { gateway, publisher, root } = await open(t)
  await publisher.publish()
  writeFileSync(join(root, 'bands', 'secret'), 'secret')
  for (const path of [
    '/blob/',
    `/blob/${'0'.repeat(64)}`,
    '/root-tx-index',
    `/root-tx-index/band/file`,
    '/blob/x/y',
    '/webseed/0123456789abcdef/00.cdb',
    '/torrents/0123.torrent',
    `/torrents/${'0'.repeat(40)}.torrent`,
    '/feed/other.xml',
    '/__proto__/a/b',
    '/constructor/name/x',
    '/a/b/c/d',
    '/webseed/0123456789abcdef/.pad/0',
  ]) {
    const answer = await gateway.ask(base + path)
    t.ok(answer.status === 404 || answer.status === 400, `${path}: ${answer.status}`)
    t.equal(answer.headers['cache-control'], 'no-store')
  }
  for (const path of [
    '/root-tx-index/../secret',
    '/root-tx-index/%2e%2e/secret',
    '/root-tx-index/a%2Fb/c',
    '/x/..%00/y',
  ]) {
    const answer = await gateway.ask(base + path)
    t.ok([400, 404].includes(answer.status), path)
    t.notMatch(answer.body.toString(), 'secret')
  }
  t.equal((await gateway.ask(`${bandPath}/manifest.json`, { method: 'POST' })).status, 405)
})

t.test('pads of the torrent are zeros', async (t) => {
  const { gateway, publisher } = await open(t)
  await publisher.publish()
  const answer = await gateway.ask(`${base}/webseed/0123456789abcdef/.pad/100000`)
  t.equal(answer.status, 200)
  t.ok(answer.body.equals(Buffer.alloc(100_000)))
  const part = await gateway.ask(`${base}/webseed/0123456789abcdef/.pad/100000`, {
    headers: { range: 'bytes=5-9' },
  })
  t.strictSame([part.status, part.body.length], [206, 5])
})

t.test('a changed file is not sent until it is published again', async (t) => {
  const { gateway, publisher, folder, bandStore } = await open(t)
  await publisher.publish()
  const name = readdirSync(folder)[0] ?? ''
  const bytes = readFileSync(join(folder, name))
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const blob = bandBlobPath(bandStore.root, sha256)
  renameSync(blob, `${blob}.away`)
  const gone = await gateway.ask(`${base}/blob/${sha256}`)
  t.strictSame(
    [gone.status, gone.headers['retry-after'], gone.headers['cache-control']],
    [503, '60', 'no-store'],
  )
  t.match(gone.body.toString(), 'Index file is being updated')
  writeFileSync(blob, Buffer.alloc(bytes.length))
  t.equal((await gateway.ask(`${base}/blob/${sha256}`)).status, 503, 'the same size, another file')
  rmSync(blob)
  await publisher.publish()
  t.ok((await gateway.ask(`${base}/blob/${sha256}`)).body.equals(bytes))
})

t.test('a feed for torrent clients, told to be of this document', async (t) => {
  const origin = 'https://gateway.example'
  const { gateway, publisher } = await open(t, { origin })
  await publisher.publish()
  const answer = await gateway.ask(`${base}/feed/root-tx-index.xml`)
  t.equal(answer.status, 200)
  t.match(answer.body.toString(), /<rss version="2\.0">.*<ttl>30<\/ttl>.*d-h0-tip-11aa22bb-0123456789ab/s)
  t.match(answer.body.toString(), `<link>${origin}${bandPath}/</link>`, 'absolute, as RSS asks for')
  const { etag } = (await gateway.ask(base)).headers
  t.equal(`"${answer.headers['x-gateway-index-feed']}"`, etag)
  t.match(answer.headers['signature-input'], /"x-gateway-index-feed"/)
})

t.test('what a request names as its host is in no torrent and in no feed', async (t) => {
  const trackers = ['udp://tracker.example:6969']
  for (const [origin, named] of [
    [undefined, trackers],
    ['https://gateway.example', ['https://gateway.example/gateway/indexes/announce', ...trackers]],
  ] as const) {
    const { gateway, publisher, offers } = await open(t, { trackers, ...(origin && { origin }) })
    await publisher.publish()
    const [infohash = ''] = offers.current()?.torrents ?? []
    for (const path of [`${base}/torrents/${infohash}.torrent`, `${base}/feed/root-tx-index.xml`]) {
      const plain = await gateway.ask(path)
      const strange = await gateway.ask(path, { headers: { host: 'stranger.example:81' } })
      t.equal(plain.status, 200, path)
      t.ok(strange.body.equals(plain.body), path)
      const listed = named.filter(
        (one) => plain.body.includes(one) || plain.body.includes(encodeURIComponent(one)),
      )
      t.strictSame(listed, named, path)
      t.equal(/indexes(?:\/|%2F)announce/.test(plain.body.toString('latin1')), origin !== undefined, path)
    }
  }
})

t.test('sent bytes are metered exactly, 304 as none; the document is free', async (t) => {
  const charges: Charge[] = []
  const settled: number[] = []
  let full = false
  const admission: Admission = {
    takeFirst: () => true,
    freeDelayMs: () => 0,
    admit(charge) {
      charges.push(charge)
      if (full) {
        return {
          status: 429,
          contentType: 'text/plain',
          lines: '\r\nRetry-After: 9\r\nCache-Control: no-store',
          body: 'slow down',
          reason: 'ip',
        }
      }
      return Promise.resolve({
        lines: '\r\nX-Payment-Response: yes',
        returnUnsent: (bytes: number) => settled.push(bytes),
      })
    },
  }
  const { gateway, publisher, folder } = await open(t, { admission })
  await publisher.publish()
  await gateway.ask(base)
  await gateway.ask(`${base}/feed/root-tx-index.xml`)
  t.equal(charges.length, 0)
  const name = readdirSync(folder)[0] ?? ''
  const size = readFileSync(join(folder, name)).length
  const whole = await gateway.ask(`${bandPath}/${name}`)
  t.equal(whole.headers['x-payment-response'], 'yes')
  t.equal(whole.headers['cache-control'], 'private, no-cache')
  await gateway.ask(`${bandPath}/${name}`, { headers: { range: 'bytes=0-9' } })
  await gateway.ask(`${bandPath}/${name}`, { method: 'HEAD' })
  const same = await gateway.ask(`${bandPath}/${name}`, {
    headers: { 'if-none-match': String(whole.headers.etag) },
  })
  t.strictSame([same.status, same.body.length], [304, 0])
  t.strictSame(
    charges.map(({ bytes, domain }) => [bytes, domain]),
    [
      [size, 'index'],
      [10, 'index'],
      [0, 'index'],
      [0, 'index'],
    ],
  )
  t.strictSame(settled, [size, 10, 0, 0])
  full = true
  const denied = await gateway.ask(`${bandPath}/${name}`)
  const again = await gateway.ask(`${bandPath}/${name}`, {
    headers: { 'if-none-match': String(whole.headers.etag) },
  })
  t.equal(again.status, 429, 'asking whether it changed is an answer too')
  t.strictSame(
    [denied.status, denied.headers['retry-after'], denied.body.toString()],
    [429, '9', 'slow down'],
  )
  t.strictSame(
    [denied.headers['cache-control'], denied.headers['x-gateway-index-file']],
    ['no-store', undefined],
  )
})

t.test('a file that is blocked by its hash is given under none of its addresses', async (t) => {
  const blocked = new Set<string>()
  const list: BlockList = {
    version: 1,
    isReadable: true,
    mayBlockContent: true,
    mayBlockHashes: true,
    mayBlockSize: () => true,
    blocksId: () => false,
    blocksDigest: (digest) => blocked.has(Buffer.from(digest).toString('hex')),
    blocksName: () => false,
  }
  const guard = new Guard(list, { attributes: () => undefined }, 100)
  const { gateway, publisher, offers } = await open(t, { guard })
  await publisher.publish()
  const offer = offers.current()
  const [one] = offer?.byDigest.keys() ?? []
  const pathsTo = (files: ReadonlyMap<string, { readonly sha256: string }>, start: string): string[] =>
    [...files].filter(([, { sha256 }]) => sha256 === one).map(([path]) => `${base}/${start}${path}`)
  if (offer === undefined || one === undefined) throw new Error('nothing is offered')
  const paths = [`${base}/blob/${one}`, ...pathsTo(offer.byName, ''), ...pathsTo(offer.bySeed, 'webseed/')]
  t.ok(paths.length >= 3)
  for (const path of paths) t.equal((await gateway.ask(path)).status, 200, path)
  blocked.add(one)
  for (const path of paths) {
    t.equal((await gateway.ask(path)).status, 451, path)
    t.equal((await gateway.ask(path, { headers: { range: 'bytes=0-9' } })).status, 451, path)
    t.equal((await gateway.ask(path, { method: 'HEAD' })).status, 451, path)
  }
})
