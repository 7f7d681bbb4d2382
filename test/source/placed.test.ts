import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Address } from '../../src/actor/mailbox-address.js'
import type { Id } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { ProgressReader, ProgressTable, progressBytes } from '../../src/source/reading/progress-table.js'
import { TransferClient } from '../../src/source/reading/transfer-client.js'
import type { SourceReply, SourceRequest } from '../../src/source/source-messages.js'
import { marksBytes } from '../../src/store/segments/segment-marks.js'
import { SegmentContent } from '../../src/store/segments/segment-reader.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { drain, sha256, someId, trail, upstream } from './rig.js'
import { threads } from './threads.js'

t.test('small payloads of a gateway are read in their segment, and nothing is left open', async (t) => {
  const bodies = new Map<Id, Buffer>()
  for (let at = 0; at < 100; at += 1) bodies.set(someId(), randomBytes(1 + at * 97))
  let requested = 0
  const server = await upstream((request, response) => {
    requested += 1
    const found = bodies.get((request.url?.replace('/raw/', '') ?? '') as Id)
    if (found === undefined) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-length': found.length, 'content-type': 'text/plain' })
    response.end(found)
  })
  t.teardown(() => server.close())
  const shape = { cells: 16, segmentBytes: 2 ** 20 }
  const segments = {
    folder: join(scratch('placed'), 'segments'),
    shape,
    memory: new SharedArrayBuffer(marksBytes(shape)),
    maxBytes: 2 ** 24,
    freeMinBytes: 0,
  }
  // More payloads than there are places in the progress table: a reader that was not forgotten would show.
  const { transfers, catalog, stop } = await threads(t, {
    gateways: [server.url],
    nodes: ['http://127.0.0.1:9'],
    segments,
    // Two places for each transfer that may be under way.
    environment: { FETCHES_MAX: '32' },
  })
  const read = async (id: Id, body: Buffer): Promise<void> => {
    const opened = await transfers.open({ id, hints: {}, provenance: trail })
    if (isRefusal(opened)) throw new Error(opened.message)
    t.ok(opened.content instanceof SegmentContent)
    t.same(opened.manifestFrom, { digest: sha256(body) })
    t.same(opened.span, { start: 0, end: body.length })
    t.ok((await drain(opened.content, 0, body.length)).equals(body))
    opened.content.close()
  }
  const readAgain = async (id: Id, body: Buffer): Promise<void> => {
    const opened = await transfers.open({ id, hints: {}, provenance: trail })
    if (isRefusal(opened)) throw new Error(opened.message)
    t.ok((await drain(opened.content, 0, body.length)).equals(body))
    opened.content.close()
  }
  for (const [id, body] of bodies) {
    // Two at a time: one transfer serves both.
    await Promise.all([read(id, body), read(id, body)])
    // And none is needed before the catalog has heard of it, nor afterwards.
    await readAgain(id, body)
  }
  t.equal(requested, bodies.size)
  const isKept = (id: Id, body: Buffer): boolean =>
    catalog.attributes(id)?.digest !== undefined && catalog.blobSize(sha256(body)) === body.length
  await eventually('every body is kept', () => [...bodies].every(([id, body]) => isKept(id, body)))
  for (const [id, body] of bodies) await readAgain(id, body)
  t.equal(requested, bodies.size)
  await stop()
})

t.test('a payload whose segment is gone is refused, not served in part', async (t) => {
  const id = someId()
  const digest = randomBytes(32)
  const requested: SourceRequest[] = []
  const fetcher: Address<SourceRequest, SourceReply> = {
    async ask(request) {
      requested.push(request)
      return {
        kind: 'placed',
        attributes: { id, size: 10, digest, verified: false, trusted: true },
        digest,
        place: { segment: 1, slot: 0, roomBytes: 0, sizeBytes: 10 },
        source: 'test',
        trusted: true,
      }
    },
    tell: () => t.fail('there is nothing to close'),
  }
  const progressReader = new ProgressReader(new ProgressTable(new SharedArrayBuffer(progressBytes(1))))
  const failing = [
    () => undefined,
    () => {
      throw new Error('no descriptor is left')
    },
  ]
  for (const open of failing) {
    const transfers = new TransferClient(fetcher, progressReader, systemClock, undefined, { open })
    const refused = await transfers.open({ id, hints: {}, provenance: trail })
    t.ok(isRefusal(refused) && refused.refused === 'busy' && refused.fault === 'self')
  }
  t.same(
    requested.map((one) => one.kind === 'open' && one.readsSegments),
    [true, true],
  )
})
