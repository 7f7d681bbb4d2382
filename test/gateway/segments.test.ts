import { closeSync, openSync, readdirSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { isRefusal } from '../../src/format/refusal.js'
import { marksBytes, SegmentMarks } from '../../src/store/segments/segment-marks.js'
import { SegmentReader } from '../../src/store/segments/segment-reader.js'
import { type SegmentOptions, SegmentStore } from '../../src/store/segments/segment-store.js'
import { scratch } from '../scratch.js'
import { sha256, someId } from '../source/rig.js'
import { stage } from './rig.js'

const folder = scratch('gateway-segments')
const shape = { cells: 8, segmentBytes: 2 ** 20 }

function opened() {
  const marks = new SegmentMarks(new SharedArrayBuffer(marksBytes(shape)), shape)
  const rules: SegmentOptions = {
    folder,
    payloadMaxBytes: 2 ** 16,
    maxBytes: () => 2 ** 23,
    freeMinBytes: 0,
    commitMs: 60_000,
    isPinned: () => false,
    onEvicted: () => undefined,
  }
  const store = SegmentStore.open(rules, marks, systemClock, silentLog)
  const reader = new SegmentReader(folder, marks, systemClock)
  return { store, reader, marks }
}

/** A gateway whose store is the segments alone. */
async function gatewayOver(segments: SegmentReader) {
  const blobs = { path: () => '/nowhere', open: () => undefined, segments }
  const edge = await stage({ parts: { blobs } })
  return {
    edge,
    async learn(digest: Buffer, size: number) {
      const id = someId()
      await edge.rig.keeper.ask({ kind: 'kept', digest, sizeBytes: size })
      const known = { id, size, digest, verified: true, trusted: true, contentType: 'text/plain' }
      await edge.rig.keeper.ask({ kind: 'learn', attributes: [known] })
      return id
    },
  }
}

t.test('content in segments is served from there, until it is removed', async (t) => {
  const { store, reader, marks } = opened()
  const { edge, learn } = await gatewayOver(reader)
  const bodies = Array.from({ length: 20 }, (_, at) => Buffer.from(`content ${at} `.repeat(at * 100 + 1)))
  const ids: string[] = []
  for (const body of bodies) {
    t.notOk(isRefusal(store.put(sha256(body), [body])))
    ids.push(await learn(sha256(body), body.length))
  }
  store.commit()
  for (let round = 0; round < 3; round += 1) {
    for (const [at, body] of bodies.entries()) {
      const answer = await edge.ask(`/${ids[at]}`)
      t.equal(answer.status, 200)
      t.equal(answer.headers['x-cache'], 'HIT')
      t.equal(answer.headers['x-gateway-verified'], 'true')
      t.ok(answer.body.equals(body))
      const range = await edge.ask(`/raw/${ids[at]}`, { headers: { range: 'bytes=3-6' } })
      t.equal(range.body.toString(), body.subarray(3, 7).toString())
    }
  }
  const [first = Buffer.alloc(0)] = bodies
  const place = reader.find(sha256(first))
  if (place === undefined) throw new Error('no place')
  t.ok(marks.isRequested(marks.cellOf(place.segment) ?? -1, place.slot), 'it is spared when its segment goes')
  store.remove(sha256(first))
  store.commit()
  t.equal((await edge.ask(`/${ids[0]}`)).status, 404, 'nobody has it any more')
  await edge.close()
  await reader.close()
  await store.close()
})

t.test('bytes of an earlier run are compared with their digest before they are sent', async (t) => {
  const before = opened()
  const [good, bad] = [Buffer.from('good '.repeat(500)), Buffer.from('bad! '.repeat(500))]
  const places = [good, bad].map((body) => before.store.put(sha256(body), [body]))
  const [, broken] = places
  if (broken === undefined || isRefusal(broken)) throw new Error('not kept')
  await before.reader.close()
  await before.store.close()
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.segment'))) {
    if (Number(name.slice(0, 10)) !== broken.segment) continue
    t.ok(statSync(join(folder, name)).size > 0)
    const file = openSync(join(folder, name), 'r+')
    writeSync(file, Buffer.from('X'), 0, 1, broken.slot * 512 + broken.roomBytes + 600)
    closeSync(file)
  }
  const after = opened()
  const { edge, learn } = await gatewayOver(after.reader)
  const answer = await edge.ask(`/${await learn(sha256(good), good.length)}`)
  t.equal(answer.status, 200)
  t.equal(answer.headers['x-cache'], 'HIT')
  t.ok(answer.body.equals(good))
  const id = await learn(sha256(bad), bad.length)
  t.not((await edge.ask(`/${id}`)).status, 200)
  await edge.close()
  await after.reader.close()
  await after.store.close()
})
