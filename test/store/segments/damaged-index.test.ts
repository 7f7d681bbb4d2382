import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isRefusal } from '../../../src/format/refusal.js'
import { openEnvironment } from '../../../src/store/lmdb.js'
import { random } from '../../property.js'
import { scratch } from '../../scratch.js'
import { payloadOf, SegmentRig, sha256 } from './rig.js'

const rules = { segmentBytes: 2 ** 20, maxBytes: 2 ** 24 }

/** A store that was closed, with a row for each of so many payloads. */
async function filled(payloads: number): Promise<string> {
  const folder = scratch('damaged-index')
  const rig = new SegmentRig(folder, rules)
  for (let seed = 0; seed < payloads; seed += 1) {
    const bytes = payloadOf(50 + (seed % 500), seed)
    if (isRefusal(rig.store.put(sha256(bytes), [bytes]))) throw new Error('not kept')
    if (seed % 100 === 0) rig.store.commit()
    if (seed % 7 === 0) rig.store.remove(sha256(payloadOf(50 + ((seed >> 1) % 500), seed >> 1)))
  }
  await rig.close()
  return folder
}

const indexOf = (folder: string): string => join(folder, 'segments', 'index')

t.test('flipped bits in the index lead to no wrong byte, and stop nothing', async (t) => {
  const payloads = 800
  const sound = await filled(payloads)
  for (let round = 0; round < 10; round += 1) {
    const folder = scratch('damaged-index')
    cpSync(sound, folder, { recursive: true })
    const path = join(indexOf(folder), 'data.mdb')
    const bytes = readFileSync(path)
    for (let flips = 1 + Math.floor(random() * 30); flips > 0; flips -= 1) {
      const at = Math.floor(random() * bytes.length)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8))
    }
    writeFileSync(path, bytes)
    for (let start = 0; start < 2; start += 1) {
      const rig = new SegmentRig(folder, rules)
      for (let seed = 0; seed < payloads; seed += 1) {
        const wanted = payloadOf(50 + (seed % 500), seed)
        const found = await rig.get(sha256(wanted))
        if (found?.equals(wanted) === false) t.fail(`wrong bytes of ${seed}`)
      }
      for (let seed = 0; seed < 100; seed += 1) {
        const fresh = payloadOf(3000, 10_000 + seed + start * 100)
        const place = rig.store.put(sha256(fresh), [fresh])
        const found = await rig.get(sha256(fresh))
        if (!isRefusal(place) && found?.equals(fresh) !== true) t.fail(`kept, and not there: ${seed}`)
      }
      await rig.close()
    }
  }
})

t.test('a row that leads to a segment of a later run is not believed', async (t) => {
  const folder = await filled(10)
  const [own, other] = [payloadOf(51, 1), payloadOf(100, 77)]
  const environment = openEnvironment(indexOf(folder), 4)
  const places = environment.table('places')
  const row = Buffer.from(places.get(sha256(own)) ?? [])
  // The first segment that the next run writes to.
  row.writeUInt32LE(2, 0)
  row.writeUInt32LE(0, 4)
  environment.write(() => places.put(sha256(own), row))
  await environment.close()
  const rig = new SegmentRig(folder, rules)
  const place = rig.store.put(sha256(other), [other])
  t.match(place, { segment: 2, slot: 0, sizeBytes: 100 })
  t.equal(await rig.get(sha256(own)), undefined, 'what lies there is another payload')
  t.ok((await rig.get(sha256(other)))?.equals(other))
  t.notOk(isRefusal(rig.store.put(sha256(own), [own])), 'it is kept anew')
  t.ok((await rig.get(sha256(own)))?.equals(own))
  await rig.close()
})

t.test('numbers of segments that are damaged are not taken up', async (t) => {
  for (const next of [Buffer.from([255, 255, 255, 255, 0, 0, 0, 0]), Buffer.from([0, 0, 0, 0])]) {
    const folder = await filled(10)
    const environment = openEnvironment(indexOf(folder), 4)
    const [meta, records] = [environment.table('meta'), environment.table('records')]
    environment.write(() => {
      meta.put(Buffer.from('next segment'), next)
      records.put(Buffer.from([255, 255, 255, 255, 0, 0, 0, 1]), Buffer.alloc(32, 1))
    })
    await environment.close()
    for (let start = 0; start < 2; start += 1) {
      const rig = new SegmentRig(folder, rules)
      const fresh = payloadOf(300, 500 + start)
      const place = rig.store.put(sha256(fresh), [fresh])
      t.ok(!isRefusal(place) && place.segment > 1 && place.segment < 10)
      t.ok((await rig.get(sha256(fresh)))?.equals(fresh))
      await rig.close()
    }
  }
})
