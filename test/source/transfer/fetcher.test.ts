import { randomBytes } from 'node:crypto'
import { stat, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { pause } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { BlobStore, blobPath } from '../../../src/store/blobs.js'
import type { Content } from '../../../src/store/content.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import {
  drain,
  gateways,
  patientGateways,
  rig,
  sha256,
  someId,
  sure,
  type Upstream,
  upstream,
} from '../rig.js'

t.test(
  'fifty first requests on two threads cause one upstream request, and all get every byte',
  async (t) => {
    const body = randomBytes(3_000_000)
    const server = await upstream((_, response) => {
      response.writeHead(200, { 'content-length': body.length, 'content-type': 'image/png' })
      response.end(body)
    })
    const house = await rig({ source: gateways([server.url]) })
    const edges = [house.edge(), house.edge()]
    const id = someId()
    const all = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const edge = edges[index % 2]!
        const opened = sure(await edge.open(id))
        const content = edge.grow(opened)
        const bytes = await drain(content, 0, content.sizeBytes)
        content.close()
        return { bytes, type: opened.attributes.contentType }
      }),
    )
    t.equal(server.requests.length, 1)
    for (const { bytes, type } of all) {
      t.ok(bytes.equals(body))
      t.equal(type, 'image/png')
    }
    const digest = sha256(body)
    await eventually('the content is stored', () => house.catalog.blobSize(digest) === body.length)
    t.same(house.catalog.attributes(id)?.digest, digest)
    t.equal(house.catalog.attributes(id)?.verified, false)
    t.same(await house.drafts(), [])
    await eventually('no transfer is held', () => house.fetcher.held === 0)
    const again = sure(await edges[0]!.open(id))
    t.equal(again.source, 'cache')
    const content = edges[0]!.grow(again)
    t.ok((await drain(content, 0, body.length)).equals(body))
    content.close()
    t.equal(server.requests.length, 1)
    await house.close()
    await server.close()
  },
)

t.test('readers get bytes before the source has sent all of them', async (t) => {
  const body = randomBytes(500_000)
  let response: ServerResponse | undefined
  const server = await upstream((_, answer) => {
    answer.writeHead(200, { 'content-length': body.length })
    answer.write(body.subarray(0, 100_000))
    response = answer
  })
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const opened = sure(await edge.open(someId()))
  t.equal(opened.attributes.digest, undefined)
  const content = edge.grow(opened)
  t.ok((await drain(content, 0, 100_000)).equals(body.subarray(0, 100_000)))
  t.equal(content.read(100_000, 200_000), undefined, 'what has not arrived is not there')
  response?.end(body.subarray(100_000))
  t.ok((await drain(content, 100_000, body.length)).equals(body.subarray(100_000)))
  content.close()
  await house.close()
  await server.close()
})

t.test('a small payload is opened when it is complete, with its digest', async (t) => {
  const body = randomBytes(1000)
  const server = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': body.length })
    response.write(body.subarray(0, 10))
    setTimeout(() => response.end(body.subarray(10)), 20)
  })
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const opened = sure(await edge.open(someId()))
  t.same(opened.attributes.digest, sha256(body))
  const content = edge.grow(opened)
  t.ok(Buffer.from(content.read(0, 1000) ?? []).equals(body))
  content.close()
  await house.close()
  await server.close()
})

t.test('one reader that leaves does not stop the others', async (t) => {
  const body = randomBytes(800_000)
  let response: ServerResponse | undefined
  const server = await upstream((_, answer) => {
    answer.writeHead(200, { 'content-length': body.length })
    answer.write(body.subarray(0, 10_000))
    response = answer
  })
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const id = someId()
  const [one, two] = [sure(await edge.open(id)), sure(await edge.open(id))]
  const leaving = edge.grow(one)
  const staying = edge.grow(two)
  const waiting = leaving.ready(700_000, 700_001)
  leaving.close()
  t.equal(await waiting, false, 'who left is not kept waiting')
  response?.end(body.subarray(10_000))
  t.ok((await drain(staying, 0, body.length)).equals(body))
  staying.close()
  t.equal(server.requests.length, 1)
  await house.close()
  await server.close()
})

t.test('when all leave early the transfer stops, and its file is removed', async (t) => {
  let gone = false
  const server = await upstream((request, response) => {
    response.writeHead(200, { 'content-length': 10_000_000 })
    response.write(randomBytes(100_000))
    request.socket.on('close', () => {
      gone = true
    })
  })
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const content = edge.grow(sure(await edge.open(someId())))
  await drain(content, 0, 50_000)
  content.close()
  await eventually('the request is given up', () => gone)
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  t.same(await house.drafts(), [])
  t.equal(house.kept.length, 0)
  await house.close()
  await server.close()
})

t.test('when all leave near the end the transfer is finished and kept', async (t) => {
  const body = randomBytes(400_000)
  let response: ServerResponse | undefined
  const server = await upstream((_, answer) => {
    answer.writeHead(200, { 'content-length': body.length })
    answer.write(body.subarray(0, 350_000))
    response = answer
  })
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const content = edge.grow(sure(await edge.open(someId())))
  await drain(content, 0, 350_000)
  content.close()
  setTimeout(() => response?.end(body.subarray(350_000)), 20)
  const kept = await eventually('the content is kept', () => house.kept[0])
  t.same(kept.digest, sha256(body))
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  await house.close()
  await server.close()
})

t.test('the readers of an edge thread that dies are released', async (t) => {
  const server = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': 10_000_000 })
    response.write(randomBytes(100_000))
  })
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  sure(await edge.open(someId()))
  t.equal(house.fetcher.held, 1)
  edge.port.close()
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  await house.close()
  await server.close()
})

const breaks: Record<string, (response: ServerResponse, body: Buffer) => void> = {
  'a body that ends early': (response, body) => {
    response.writeHead(200, { 'content-length': body.length })
    response.write(body.subarray(0, body.length - 1), () => response.destroy())
  },
  'a server that dies half way': (response, body) => {
    response.writeHead(200, { 'content-length': body.length })
    response.write(body.subarray(0, body.length / 2))
    setTimeout(() => response.destroy(), 20)
  },
  'a digest that does not match': (response, body) => {
    response.writeHead(200, {
      'content-length': body.length,
      'x-ar-io-digest': sha256(randomBytes(10)).toString('base64url'),
    })
    response.end(body)
  },
  'a server that stalls': (response, body) => {
    response.writeHead(200, { 'content-length': body.length })
    response.write(body.subarray(0, 100))
  },
}

for (const [name, answer] of Object.entries(breaks)) {
  for (const sizeBytes of [1000, 300_000]) {
    t.test(`${name} is never completed and never cached (${sizeBytes} bytes)`, async (t) => {
      const body = randomBytes(sizeBytes)
      const server = await upstream((_, response) => answer(response, body))
      const house = await rig({ source: gateways([server.url], true, 200) })
      const edge = house.edge()
      const id = someId()
      const opened = await edge.open(id)
      if (sizeBytes < 1024) {
        t.ok(isRefusal(opened), 'small ones are refused before anything was said')
        if (isRefusal(opened)) t.match(opened.refused, /^(upstream|late|forged)$/)
      } else {
        const content = edge.grow(sure(opened))
        t.ok((await drain(content, 0, body.length)).length < body.length)
        content.close()
      }
      await eventually('no transfer is held', () => house.fetcher.held === 0)
      t.equal(house.kept.length, 0)
      t.equal(house.catalog.attributes(id), undefined)
      t.same(await house.drafts(), [])
      await house.close()
      await server.close()
    })
  }
}

t.test('a second gateway brings a small payload that the first one broke', async (t) => {
  const body = randomBytes(900)
  const broken = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': body.length })
    response.write(body.subarray(0, 100), () => response.destroy())
  })
  const good = await upstream((_, response) => response.end(body))
  const house = await rig({ source: patientGateways([broken.url, good.url]) })
  const opened = sure(await house.edge().open(someId()))
  t.same(opened.attributes.digest, sha256(body))
  t.equal(broken.requests.length, 1)
  await eventually('all bytes are fetched', () => house.meters.total('fetched_bytes_total') === body.length)
  t.match(house.meters.text(), /fetches_total{source="trusted-gateways",outcome="broken"} 1\n/)
  t.match(house.meters.text(), /fetches_total{source="trusted-gateways",outcome="whole"} 1\n/)
  await house.close()
  await broken.close()
  await good.close()
})

/** A server that breaks each answer after 100,000 bytes; of a range it answers what `rest` says. */
function brittle(
  body: Buffer,
  rest: (start: number) => { start: number; sizeBytes: number; bytes: Buffer },
): Promise<Upstream> {
  return upstream((request, response) => {
    const rangeHeader = /^bytes=(\d+)-/.exec(request.headers.range ?? '')
    const { start, sizeBytes, bytes } =
      rangeHeader === null ? { start: 0, sizeBytes: body.length, bytes: body } : rest(Number(rangeHeader[1]))
    const range = { 'content-range': `bytes ${start}-${sizeBytes - 1}/${sizeBytes}` }
    response.writeHead(rangeHeader === null ? 200 : 206, {
      'content-length': bytes.length,
      ...(rangeHeader ? range : {}),
    })
    if (bytes.length <= 100_000) response.end(bytes)
    else response.write(bytes.subarray(0, 100_000), () => setTimeout(() => response.destroy(), 20))
  })
}

t.test('a large body that breaks off is resumed, as long as each try brings bytes', async (t) => {
  const body = randomBytes(450_000)
  const server = await brittle(body, (start) => ({
    start,
    sizeBytes: body.length,
    bytes: body.subarray(start),
  }))
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const content = edge.grow(sure(await edge.open(someId())))
  t.same(await drain(content, 0, body.length), body)
  content.close()
  await eventually('the content is kept', () => house.kept.length === 1)
  t.same(house.kept[0]?.digest, sha256(body))
  t.equal(house.meters.total('fetches_resumed_total'), server.requests.length - 1)
  t.ok(server.requests.length >= 5)
  const window = { start: 200_000, end: 449_999 }
  const cut = edge.grow(sure(await edge.open(someId(), window)))
  t.same(await drain(cut, 200_000, 450_000), body.subarray(200_000))
  cut.close()
  await house.close()
  await server.close()
})

t.test('resuming refuses the rest of other content', async (t) => {
  const body = randomBytes(450_000)
  for (const rest of [
    (start: number) => ({ start, sizeBytes: body.length + 1, bytes: randomBytes(body.length + 1 - start) }),
    (start: number) => ({ start: start + 1, sizeBytes: body.length, bytes: body.subarray(start + 1) }),
    (start: number) => ({ start, sizeBytes: body.length, bytes: body.subarray(start + 1) }),
  ]) {
    const server = await brittle(body, rest)
    const house = await rig({ source: gateways([server.url]) })
    const edge = house.edge()
    const content = edge.grow(sure(await edge.open(someId())))
    t.ok((await drain(content, 0, body.length)).length < body.length)
    content.close()
    t.equal(server.requests.length, 3, 'asked for the rest twice')
    await eventually('no transfer is held', () => house.fetcher.held === 0)
    t.equal(house.kept.length, 0)
    await house.close()
    await server.close()
  }
})

t.test('a far window gets a transfer of its own, a near one shares the whole', async (t) => {
  const body = randomBytes(2_000_000)
  const server = await upstream((request, response) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
    if (range === null) {
      response.writeHead(200, { 'content-length': body.length })
      response.write(body.subarray(0, 1000))
      return
    }
    const [start, end] = [Number(range[1]), Number(range[2])]
    response.writeHead(206, {
      'content-length': end - start + 1,
      'content-range': `bytes ${start}-${end}/${body.length}`,
    })
    response.end(body.subarray(start, end + 1))
  })
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const id = someId()
  const whole = sure(await edge.open(id))
  const near = sure(await edge.open(id, { start: 2000, end: 2999 }))
  t.equal(near.slot, whole.slot)
  const far = sure(await edge.open(id, { start: 1_500_000, end: 1_599_999 }))
  t.equal(far.base, 1_500_000)
  t.equal(far.sizeBytes, 100_000)
  t.equal(far.attributes.size, body.length)
  const content = edge.grow(far)
  t.ok((await drain(content, 1_500_000, 1_600_000)).equals(body.subarray(1_500_000, 1_600_000)))
  content.close()
  t.equal(server.requests.length, 2)
  t.equal(house.kept.length, 0, 'windows are never cached')
  await house.close()
  t.same(await house.drafts().catch(() => []), [])
  await server.close()
})

/** A gateway with payloads of one body, in ranges or whole. */
function ranged(body: Buffer): Promise<Upstream> {
  return upstream((request, response) => {
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    if (range === null) return void response.writeHead(200, { 'content-length': body.length }).end(body)
    const start = Number(range[1])
    const end = Math.min(range[2] === '' ? body.length : Number(range[2]), body.length - 1)
    const place = {
      'content-length': end - start + 1,
      'content-range': `bytes ${start}-${end}/${body.length}`,
    }
    response.writeHead(206, place).end(body.subarray(start, end + 1))
  })
}

t.test('windows of payloads of unknown size end with them, and are shared by like ones only', async (t) => {
  const body = randomBytes(200_000)
  const server = await ranged(body)
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const id = someId()
  const window = { start: 150_000, end: 300_000 } as const
  const [one, like, exact] = await Promise.all([
    edge.open(id, { ...window, mayEndEarlier: true }),
    edge.open(id, { ...window, mayEndEarlier: true }),
    edge.open(id, window),
  ])
  t.equal(sure(one).sizeBytes, 50_000)
  t.equal(sure(one).slot, sure(like).slot)
  t.ok(isRefusal(exact))
  const content = edge.grow(sure(one))
  t.ok((await drain(content, 150_000, 200_000)).equals(body.subarray(150_000)))
  content.close()
  await house.close()
  await server.close()
})

t.test('after a window the whole is brought in the background, once, if it is small enough', async (t) => {
  const body = randomBytes(200_000)
  for (const { maxBytes, isFilled } of [
    { maxBytes: 200_000, isFilled: true },
    { maxBytes: 199_999, isFilled: false },
    { maxBytes: 0, isFilled: false },
  ]) {
    const server = await ranged(body)
    const house = await rig({
      source: gateways([server.url]),
      fetcher: { fills: { maxBytes, concurrency: 1 } },
    })
    const edge = house.edge()
    const id = someId()
    const windows = [100_000, 120_000, 140_000].map((start) => ({ start, end: start + 9 }))
    const opened = await Promise.all(windows.map((window) => edge.open(id, window)))
    for (const one of opened) {
      const content = edge.grow(sure(one))
      t.equal((await drain(content, sure(one).base, sure(one).base + 10)).length, 10)
      content.close()
    }
    if (isFilled)
      await eventually(
        'the content is stored whole',
        () => house.catalog.blobSize(sha256(body)) === body.length,
      )
    else await pause(100)
    const wholes = server.requests.filter(({ headers }) => headers.range === undefined)
    t.equal(wholes.length, isFilled ? 1 : 0, `up to ${maxBytes} bytes`)
    t.equal(house.meters.total('fetches_filled_total') > 0, isFilled)
    await house.close()
    await server.close()
  }
})

t.test('a request that comes back in a loop does not wait for itself', async (t) => {
  const server = await upstream(() => undefined)
  const house = await rig({ source: gateways([server.url], true) })
  const edge = house.edge()
  const id = someId()
  const first = edge.open(id)
  await eventually('the first request', () => server.requests.length === 1)
  const second = await edge.open(id, undefined, {
    provenance: { hops: 1, via: ['gateway.example'], forward: true },
  })
  t.equal(isRefusal(second) && second.refused, 'unknown')
  await server.close()
  t.equal(isRefusal(await first), true)
  await house.close()
})

t.test('a blob missing on disk is fetched again, and a damaged one is detected', async (t) => {
  const body = randomBytes(5000)
  const server = await upstream((_, response) => response.end(body))
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const id = someId()
  const digest = sha256(body)
  const fetchAll = async (): Promise<string> => {
    const opened = sure(await edge.open(id))
    const content = edge.grow(opened)
    t.ok((await drain(content, 0, body.length)).equals(body))
    content.close()
    await eventually(
      'the content is stored, and no transfer held',
      () => house.catalog.blobSize(digest) !== undefined && house.fetcher.held === 0,
    )
    return opened.source
  }
  t.equal(await fetchAll(), 'trusted-gateways')
  t.equal(await fetchAll(), 'cache')
  t.same(await edge.address.ask({ kind: 'check', id, digest }), { kind: 'checked', sound: true })
  const rotten = Buffer.from(body)
  rotten[100]! ^= 1
  const path = blobPath(house.store.folder, digest)
  await writeFile(path, rotten)
  t.same(await edge.address.ask({ kind: 'check', id, digest }), { kind: 'checked', sound: false })
  t.equal(house.catalog.blobSize(digest), undefined)
  await t.rejects(stat(path))
  t.equal(await fetchAll(), 'trusted-gateways')
  await house.store.remove(digest)
  t.equal(await fetchAll(), 'trusted-gateways')
  t.equal(server.requests.length, 3)
  await house.close()
  await server.close()
})

t.test('transfers beyond the bound are refused as busy, and a stop ends all', async (t) => {
  const server = await upstream(() => undefined)
  const house = await rig({ source: gateways([server.url]), fetcher: { fetchesMax: 2 } })
  const edge = house.edge()
  const waiting = [edge.open(someId()), edge.open(someId())]
  await eventually('the second request', () => server.requests.length === 2)
  const third = await edge.open(someId())
  t.equal(isRefusal(third) && third.refused, 'busy')
  await server.close()
  for (const one of await Promise.all(waiting)) t.equal(isRefusal(one) && one.refused, 'upstream')
  await house.close()
})

t.test('one client that begins many transfers leaves room for others', async (t) => {
  const server = await upstream(() => undefined)
  const house = await rig({ source: gateways([server.url]), fetcher: { fetchesMax: 4 } })
  const edge = house.edge()
  const one = { client: 'one' }
  const waiting = [edge.open(someId(), undefined, one), edge.open(someId(), undefined, one)]
  await eventually('the second request', () => server.requests.length === 2)
  t.match(await edge.open(someId(), undefined, one), { refused: 'busy', fault: 'client' })
  waiting.push(edge.open(someId(), undefined, { client: 'another' }), edge.open(someId()))
  await eventually('the fourth request', () => server.requests.length === 4)
  await server.close()
  for (const each of await Promise.all(waiting)) t.equal(isRefusal(each) && each.refused, 'upstream')
  const again = await edge.open(someId(), undefined, one)
  t.equal(isRefusal(again) && again.refused, 'upstream', 'what has ended gives its place back')
  await house.close()
})

t.test('what only waits for the disk uses no share of its client', async (t) => {
  const body = randomBytes(300_000)
  const server = await upstream((_, response) => response.end(body))
  const path = scratch('late-disk')
  let go = (): void => undefined
  const late = new Promise<void>((resolve) => {
    go = resolve
  })
  class LateStore extends BlobStore {
    override async keep(...kept: Parameters<BlobStore['keep']>): ReturnType<BlobStore['keep']> {
      await late
      return super.keep(...kept)
    }
  }
  const store = new LateStore(join(path, 'blobs'))
  const house = await rig({ source: gateways([server.url]), fetcher: { fetchesMax: 4 }, path, store })
  const edge = house.edge()
  for (let transfer = 0; transfer < 8; transfer += 1) {
    const content = edge.grow(sure(await edge.open(someId(), undefined, { client: 'one' })))
    t.ok((await drain(content, 0, body.length)).equals(body))
    content.close()
  }
  t.equal(house.blobCache.waiting, 8)
  go()
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  await house.close()
  await server.close()
})

t.test('those who take their time over what is here keep nobody from a transfer', async (t) => {
  const body = randomBytes(300_000)
  const server = await upstream((_, response) => response.end(body))
  const house = await rig({ source: gateways([server.url]), slots: 4, fetcher: { fetchesMax: 2 } })
  const edge = house.edge()
  const slow: Content[] = []
  for (let reader = 0; reader < 12; reader += 1) {
    const content = edge.grow(sure(await edge.open(someId(), undefined, { client: `10.${reader}.0.1` })))
    slow.push(content)
    t.ok(await content.ready(body.length - 1, body.length))
    t.ok(Buffer.from(content.read(0, 1)!).equals(body.subarray(0, 1)))
    await eventually('no transfer is held', () => house.fetcher.held === 0)
  }
  for (const content of slow) {
    t.ok((await drain(content, 1, body.length)).equals(body.subarray(1)))
    content.close()
  }
  t.equal(house.fetcher.held, 0)
  await house.close()
  await server.close()
})

t.test('arriving bytes state no digest, and must match a recorded one', async (t) => {
  const body = randomBytes(200_000)
  let answer = body
  const server = await upstream((_, response) => response.end(answer))
  const honest = await upstream((_, response) => response.end(body))
  const house = await rig({ source: gateways([server.url, honest.url]) })
  const edge = house.edge()
  const id = someId()
  const digest = sha256(body)
  const known = { id, size: body.length, verified: true, trusted: true, digest }
  await house.keeper.ask({ kind: 'learn', attributes: [known] })
  answer = Buffer.from(body)
  answer[0]! ^= 1
  const lie = sure(await edge.open(id))
  t.equal(lie.attributes.digest, undefined)
  t.equal(lie.attributes.verified, false)
  const wrong = edge.grow(lie)
  t.ok((await drain(wrong, 0, body.length)).length < body.length)
  wrong.close()
  await eventually('no transfer is held', () => house.fetcher.held === 0)
  t.same(house.catalog.attributes(id)?.digest, digest, 'what is proven stays on record')
  const right = edge.grow(sure(await edge.open(id)))
  t.ok((await drain(right, 0, body.length)).equals(body))
  t.equal(server.requests.length, 1, 'who sent wrong bytes is not asked for them again')
  right.close()
  await eventually('the content is stored', () => house.catalog.blobSize(digest) === body.length)
  t.equal(house.catalog.attributes(id)?.verified, true)
  await house.close()
  await server.close()
  await honest.close()
})

t.test('where the only source sends forged bytes it is a failure, not a 404', async (t) => {
  const body = randomBytes(200)
  const server = await upstream((_, response) => response.end(body))
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  const id = someId()
  const known = { id, size: 300, verified: true, trusted: true, digest: randomBytes(32) }
  await house.keeper.ask({ kind: 'learn', attributes: [known] })
  for (let round = 0; round < 2; round += 1) {
    const refused = await edge.open(id)
    t.equal(isRefusal(refused) && refused.refused, 'forged')
  }
  t.equal(server.requests.length, 1)
  await house.close()
  await server.close()
})
