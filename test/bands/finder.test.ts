import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { BandFinder } from '../../src/bands/finder.js'
import { readIndexSource } from '../../src/bands/index-sources.js'
import { type ContentSource, type Ranges, rangesUpstream } from '../../src/bands/ranges.js'
import { RemoteReads } from '../../src/bands/remote-index.js'
import { idOfBytes } from '../../src/format/id.js'
import { refuse } from '../../src/format/refusal.js'
import { eventually } from '../eventually.js'
import { house, idFor, shelveBand, span } from './root-band-rig.js'

const nowhere: ContentSource = { open: () => Promise.resolve(refuse('unknown', 'upstream', 'not there')) }
const remote = {
  regionsMax: 100,
  regionMs: 60_000,
  concurrencyMax: 4,
  waitMs: 3000,
  coolMs: 60_000,
  httpMs: 6000,
  contentMs: 30_000,
}

/** What a web server does with one request. */
type Serving = (request: IncomingMessage, response: ServerResponse) => boolean

/** Writes one byte every tenth of a second, for as long as somebody listens. */
function drip(response: ServerResponse): void {
  const timer = systemClock.every(100, () => response.write('x'))
  response.on('close', () => timer.cancel())
}

/** A plain web server with ranges over a folder; `special` may answer first. */
async function web(t: Test, folder: string, special: Serving = () => false) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    requests.push(`${path} ${request.headers.range ?? ''}`.trim())
    if (special(request, response)) return
    const bytes = readFileSync(join(folder, path.slice(1)))
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    if (from === undefined) {
      response.end(bytes)
      return
    }
    const range = `bytes ${from}-${to}/${bytes.length}`
    response.writeHead(206, { 'content-range': range }).end(bytes.subarray(Number(from), Number(to) + 1))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

function finderOf(
  t: Test,
  sources: readonly string[],
  content = nowhere,
  bandFolders: readonly string[] = [],
) {
  const upstream = rangesUpstream({ timeoutMs: 10_000, connectionsMax: 4 })
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const options = { bandFolders, sources, watchMs: 50, watchSources: true, remoteMs: 30_000 }
  let turned = 0
  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + turned }
  const finder = new BandFinder(options, { upstream, content, clock, options: remote }, silentLog, meters)
  t.teardown(async () => {
    finder.close()
    await upstream.destroy()
  })
  const find = async (number: number | string) => finder.find(idOfBytes(idFor(number)), '127.0.0.1')
  const count = (outcome: string): number =>
    Number(new RegExp(`band_lookups_total\\{outcome="${outcome}"\\} (\\d+)`).exec(meters.text())?.[1])
  const turn = (ms: number): void => {
    turned += ms
  }
  return { finder, find, count, turn }
}

t.test('sources are read as the settings of the network write them', async (t) => {
  const id = idOfBytes(idFor('x'))
  t.strictSame(readIndexSource('/srv/index'), { kind: 'path', path: '/srv/index' })
  t.strictSame(readIndexSource('https://a.b/c/manifest.json'), {
    kind: 'http',
    url: 'https://a.b/c/manifest.json',
    partitioned: true,
  })
  t.strictSame(readIndexSource('http://a.b/c.cdb'), {
    kind: 'http',
    url: 'http://a.b/c.cdb',
    partitioned: false,
  })
  t.strictSame(readIndexSource(id), { kind: 'content', id, partitioned: false })
  t.strictSame(readIndexSource(`${id}:manifest`), { kind: 'content', id, partitioned: true })
  const region = { offset: 5, sizeBytes: 900 }
  t.strictSame(readIndexSource(`${id}:5:900`), { kind: 'content', id, region, partitioned: false })
  t.strictSame(readIndexSource(`${id}:5:900:manifest`), { kind: 'content', id, region, partitioned: true })
  for (const wrong of ['', 'http://', 'http://u@a/b', 'http://:p@a/b', ':5:6'])
    t.equal(readIndexSource(wrong), undefined, wrong)
})

t.test('bands on this machine answer at once, and new ones are found', async (t) => {
  const { bandStore } = await house()
  await shelveBand(bandStore, 'one', span(0, 50))
  const { finder, find, count } = finderOf(t, [], nowhere, [join(bandStore.root, 'own', 'root-tx-index')])
  const found = finder.find(idOfBytes(idFor(7)), '127.0.0.1')
  t.notOk(found instanceof Promise)
  t.strictSame(found, { rootId: idOfBytes(idFor('root 0')), itemOffset: 7000, itemSize: 900 })
  t.equal(await find(60), undefined)
  await shelveBand(bandStore, 'two', span(50, 70))
  t.equal(count('absent'), 1)
  t.equal((await eventually('the band is found', () => find(60))).itemOffset, 60_000)
  t.equal(count('local'), 2)
})

t.test(
  'an index far away: the manifest and a header once, two ranges an item, none where they are remembered',
  async (t) => {
    const { bandStore } = await house()
    const alike = span(0, 20_000).filter((number) => idFor(number)[0] === 7)
    const [one = 0, other = 0] = alike
    const folder = await shelveBand(bandStore, 'far', alike)
    const { url, requests } = await web(t, folder)
    const { find, count } = finderOf(t, [`${url}/manifest.json`])
    t.equal((await find(one))?.itemOffset, one * 1000)
    t.strictSame(requests.length, 4, 'manifest, header, slots, record')
    t.equal((await find(one))?.itemOffset, one * 1000)
    t.equal(requests.length, 4)
    t.equal((await find(other))?.itemOffset, other * 1000)
    t.equal(requests.length, 6, 'two ranges a cold hit')
    t.equal(await find('nobody'), undefined)
    t.strictSame([count('remote'), count('absent')], [3, 1])
  },
)

t.test('one file far away, and one that is content of the chain', async (t) => {
  const { bandStore } = await house()
  const folder = await shelveBand(bandStore, 'far', span(0, 60))
  const name = `${idFor(5).subarray(0, 1).toString('hex')}.cdb`
  const { url } = await web(t, folder)
  const bytes = readFileSync(join(folder, name))
  const inside = Buffer.concat([Buffer.alloc(1000, 7), bytes, Buffer.alloc(500, 9)])
  const item = idOfBytes(idFor('item'))
  const windows: unknown[] = []
  const content: ContentSource = {
    open({ id, window }) {
      windows.push(window)
      const attributes = { id, size: inside.length, verified: false, trusted: false }
      const whole = { start: 0, end: inside.length }
      const slow = new Set<number>()
      return Promise.resolve({
        attributes,
        span: whole,
        source: 'test',
        trusted: false,
        manifestFrom: { reader: 1 },
        content: {
          sizeBytes: inside.length,
          read(start: number, end: number) {
            if (!slow.has(start)) return undefined
            return inside.subarray(start, Math.min(end, start + 100))
          },
          ready: (start: number) => Promise.resolve(slow.add(start).size > 0),
          close: () => undefined,
        },
      })
    },
  }
  t.equal((await finderOf(t, [`${url}/${name}`]).find(5))?.itemOffset, 5000)
  t.equal((await finderOf(t, [`${item}:1000:${bytes.length}`], content).find(5))?.itemOffset, 5000)
  t.match(windows[0], { start: 1000, end: 1000 + 4095 })
})

t.test('servers with wrong answers are not used, and not asked for a while', async (t) => {
  const { bandStore } = await house()
  const folder = await shelveBand(bandStore, 'far', span(0, 60))
  const deeds: Record<string, Serving> = {
    'a redirect': (_, response) => Boolean(response.writeHead(302, { location: '/elsewhere' }).end()),
    'the whole for a range': (_, response) => Boolean(response.writeHead(200).end('x'.repeat(5000))),
    'another range': (_, response) =>
      Boolean(response.writeHead(206, { 'content-range': 'bytes 0-1/5000' }).end('xx')),
    'fewer bytes': (_, response) =>
      Boolean(response.writeHead(206, { 'content-range': 'bytes 0-4095/5000' }).end('xx')),
    rubbish: (_, response) =>
      Boolean(
        response.writeHead(206, { 'content-range': 'bytes 0-4095/5000' }).end(Buffer.alloc(4096, 0xff)),
      ),
    'an error': (_, response) => Boolean(response.writeHead(500).end()),
    silence: () => true,
    'a byte now and then': (_, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-4095/5000', 'content-length': 4096 })
      drip(response)
      return true
    },
    'a hang-up': (request) => Boolean(request.destroy()),
  }
  for (const [why, deed] of Object.entries(deeds)) {
    let naughty = true
    const { url, requests } = await web(t, folder, (request, response) => naughty && deed(request, response))
    const name = `${idFor(5).subarray(0, 1).toString('hex')}.cdb`
    const { find, count, turn } = finderOf(t, [`${url}/${name}`])
    t.equal(await find(5), undefined, why)
    t.equal(count('failed'), 1, why)
    const before = requests.length
    t.equal(await find(5), undefined)
    t.equal(requests.length, before, 'it rests')
    naughty = false
    turn(remote.coolMs)
    t.equal((await find(5))?.itemOffset, 5000, `${why} is over`)
  }
})

t.test('what fails for the ids of a stranger puts no index away, and a header that fails does', async (t) => {
  const { bandStore } = await house()
  const [known = 0, ...others] = span(0, 20_000).filter((number) => idFor(number)[0] === 7)
  const folder = await shelveBand(bandStore, 'far', others.concat(known))
  const ways: Readonly<Record<string, Serving>> = {
    silence: () => true,
    'an error': (_, response) => Boolean(response.writeHead(500).end()),
  }
  for (const [why, deed] of Object.entries(ways)) {
    const isServed = new Set<string>()
    let isLearning = true
    let isGone = false
    const { url, requests } = await web(t, folder, (request, response) => {
      const key = `${request.url} ${request.headers.range}`
      if (isLearning) isServed.add(key)
      return (isGone || !isServed.has(key)) && deed(request, response)
    })
    await finderOf(t, [`${url}/07.cdb`]).find(known)
    isLearning = false
    const { find } = finderOf(t, [`${url}/07.cdb`])
    const strangers = others.slice(0, 4).map((number) => find(number))
    t.strictSame(await Promise.all(strangers), [undefined, undefined, undefined, undefined], why)
    t.equal((await find(known))?.itemOffset, known * 1000, why)
    isGone = true
    let before = 0
    await eventually('the index rests', async () => {
      before = requests.length
      await find(others[5] ?? 0)
      return requests.length === before
    })
  }
})

t.test('clients take turns at an index', async (t) => {
  const order: number[] = []
  const ranges: Ranges = {
    async read(start) {
      order.push(start)
      return { bytes: Buffer.alloc(1), sizeBytes: 1000 }
    },
  }
  const reads = new RemoteReads(systemClock, { ...remote, concurrencyMax: 1 }, 1000)
  const read = (at: number, client: string): Promise<unknown> => reads.read('x', ranges, at, at + 1, client)
  const stranger = Array.from({ length: 10 }, (_, at) => read(at, '10.0.0.1'))
  await Promise.all([...stranger, read(99, '192.0.2.1')])
  t.ok(order.slice(0, 3).includes(99), 'a client with one read does not wait for all of another')
})

t.test('an index with a very slow manifest delays only the first request', async (t) => {
  const { bandStore } = await house()
  const folder = await shelveBand(bandStore, 'far', span(0, 60))
  const { url, requests } = await web(t, folder, (request, response) => {
    if (request.url !== '/manifest.json') return false
    response.writeHead(200, { 'content-length': 4096 })
    drip(response)
    return true
  })
  const { find, count } = finderOf(t, [`${url}/manifest.json`])
  t.strictSame(await Promise.all([find(5), find(6)]), [undefined, undefined])
  t.equal(count('failed'), 2)
  for (let more = 10; more < 30; more += 1) t.equal(await find(more), undefined)
  t.equal(count('absent'), 22, 'nobody was kept waiting')
  t.equal(requests.length, 1)
})

/** Content of the chain: these bytes for every id. */
function contentOf(bytes: Buffer): ContentSource {
  return {
    open: ({ id }) =>
      Promise.resolve({
        attributes: { id, size: bytes.length, verified: false, trusted: false },
        span: { start: 0, end: bytes.length },
        source: 'test',
        trusted: false,
        manifestFrom: { reader: 1 },
        content: {
          sizeBytes: bytes.length,
          read: (start: number, end: number) => bytes.subarray(start, end),
          ready: () => Promise.resolve(true),
          close: () => undefined,
        },
      }),
  }
}

t.test('a manifest from elsewhere may not send us to machines in our own network', async (t) => {
  const { bandStore } = await house()
  const folder = await shelveBand(bandStore, 'far', span(0, 50))
  const { url, requests } = await web(t, folder)
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as {
    partitions: { prefix: string; location: object }[]
  }
  for (const partition of manifest.partitions)
    partition.location = { type: 'http', url: `${url}/${partition.prefix}.cdb` }
  const item = idOfBytes(idFor('item'))
  const { find, count } = finderOf(t, [`${item}:manifest`], contentOf(Buffer.from(JSON.stringify(manifest))))
  t.equal(await find(5), undefined)
  t.equal(count('failed'), 1)
  t.equal(requests.length, 0)
})

t.test('a manifest of others may not send us to files of its own choosing on this machine', async (t) => {
  const { bandStore } = await house()
  const folder = await shelveBand(bandStore, 'far', span(0, 50))
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as {
    partitions: { location: object }[]
  }
  const { url } = await web(t, folder, ({ url: path }, response) => {
    if (path !== '/manifest.json') return false
    for (const partition of manifest.partitions)
      partition.location = { type: 'http', url: 'file:///etc/passwd' }
    response.end(JSON.stringify(manifest))
    return true
  })
  const { find, count } = finderOf(t, [`${url}/manifest.json`])
  t.equal(await find(5), undefined)
  t.equal(count('failed'), 1)
})
