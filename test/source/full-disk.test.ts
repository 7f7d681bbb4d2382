import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { BlobStore } from '../../src/store/blobs.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { drain, patientGateways, rig, sha256, someId, sure, upstream } from './rig.js'

/** A disk that says how much room it has. */
class TightStore extends BlobStore {
  disk = 0
  memory = 2 ** 40
  override readonly inMemoryMaxBytes = 5_000_000

  override freeBytes(): { disk: number; memory: number } {
    return { disk: this.disk, memory: this.memory }
  }
}

t.test('what a full disk does not take is served from memory, within a bound, and not kept', async (t) => {
  const body = randomBytes(2_000_000)
  const server = await upstream((request, response) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
    const [start, end] = range === null ? [0, body.length] : [Number(range[1]), Number(range[2]) + 1]
    const place = range === null ? {} : { 'content-range': `bytes ${start}-${end - 1}/${body.length}` }
    response.writeHead(range === null ? 200 : 206, { 'content-length': end - start, ...place })
    response.end(body.subarray(start, end))
  })
  const path = scratch('full-disk')
  const store = new TightStore(join(path, 'blobs'))
  const house = await rig({ source: patientGateways([server.url, server.url]), path, store })
  t.teardown(async () => {
    await house.close()
    await server.close()
  })
  const edge = house.edge()
  const digest = sha256(body)

  const [one, two] = [sure(await edge.open(someId())), sure(await edge.open(someId()))]
  const requestsBefore = server.requests.length
  t.match(await edge.open(someId()), { refused: 'busy', fault: 'self', message: 'the disk is full' })
  t.equal(server.requests.length, requestsBefore + 1, 'another source has no more room: it is not asked')
  const window = sure(await edge.open(someId(), { start: 1_500_000, end: 1_500_999 }))
  const inWindow = edge.grow(window)
  t.ok((await drain(inWindow, 1_500_000, 1_501_000)).equals(body.subarray(1_500_000, 1_501_000)))
  inWindow.close()
  for (const opened of [one, two]) {
    const content = edge.grow(opened)
    t.ok((await drain(content, 0, body.length)).equals(body), 'all bytes')
    content.close()
  }
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  t.equal(house.catalog.blobSize(digest), undefined, 'not kept')
  t.same(await house.drafts(), [])

  // The memory was given back with the last reader.
  for (let turn = 0; turn < 3; turn += 1) {
    const id = someId()
    await eventually('the content is sent whole', async () => {
      const opened = await edge.open(id)
      if ('refused' in opened) return false
      const content = edge.grow(opened)
      t.ok((await drain(content, 0, body.length)).equals(body))
      content.close()
      return true
    })
  }
  store.memory = 1000
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  t.match(await edge.open(someId()), { refused: 'busy', fault: 'self' }, 'no memory either')

  store.disk = 2 ** 40
  const content = edge.grow(sure(await edge.open(someId())))
  t.ok((await drain(content, 0, body.length)).equals(body))
  content.close()
  t.ok(
    await eventually('the content is stored', () => house.catalog.blobSize(digest) !== undefined),
    'kept as soon as there is room',
  )
})

t.test('a second source that has more bytes gets no more memory than there is', async (t) => {
  const claims = { first: 3000, second: 6_000_000 }
  const body = randomBytes(claims.second)
  const broken = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': claims.first })
    response.write(body.subarray(0, 1000), () => response.destroy())
  })
  const good = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': claims.second })
    response.end(body.subarray(0, claims.second))
  })
  const path = scratch('full-disk')
  const store = new TightStore(join(path, 'blobs'))
  // All bytes are judged before a reader is told of any, so that another source is asked where one fails.
  const fetch = { digestBufferMaxBytes: 8_000_000 }
  const house = await rig({ source: patientGateways([broken.url, good.url]), path, store, fetch })
  t.teardown(async () => {
    await house.close()
    await broken.close()
    await good.close()
  })
  const edge = house.edge()

  t.match(await edge.open(someId()), { refused: 'busy', message: 'the disk is full' }, 'more than there is')
  t.equal(good.requests.length, 1, 'it was asked')
  claims.second = 4_000_000
  const large = edge.grow(sure(await edge.open(someId())))
  t.ok((await drain(large, 0, claims.second)).equals(body.subarray(0, claims.second)))
  t.match(await edge.open(someId()), { refused: 'busy' }, 'what it took is counted')
  large.close()
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  const next = edge.grow(sure(await edge.open(someId())))
  t.ok((await drain(next, 0, claims.second)).equals(body.subarray(0, claims.second)), 'and given back')
  next.close()
})

t.test(
  'a source that announces more than any disk takes does not keep another one from being asked',
  async (t) => {
    const body = randomBytes(3_000_000)
    const server = await upstream((_, response) => {
      response.writeHead(200, { 'content-length': body.length })
      response.end(body)
    })
    const liar = await upstream((_, response) => {
      response.writeHead(200, { 'content-length': 2 ** 45 })
      response.write(body)
    })
    const path = scratch('announced')
    const store = new TightStore(join(path, 'blobs'))
    store.disk = 2 ** 31
    const house = await rig({ source: patientGateways([liar.url, server.url]), path, store })
    t.teardown(async () => {
      await house.close()
      await Promise.all([server.close(), liar.close()])
    })
    const edge = house.edge()
    // Gateways take turns: of three contents, one at least is asked of the liar first.
    for (let turn = 0; turn < 3; turn += 1) {
      const content = edge.grow(sure(await edge.open(someId())))
      t.ok((await drain(content, 0, body.length)).equals(body))
      content.close()
    }
    t.ok(liar.requests.length > 0)
  },
)
