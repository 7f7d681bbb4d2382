import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isRefusal } from '../../../src/format/refusal.js'
import { encodeChunkWords, nameOfChunk } from '../../../src/store/segments/chunk-words.js'
import { chunksOf } from '../../chain/made-chunks.js'
import { random } from '../../property.js'
import { scratch } from '../../scratch.js'
import { LossyDisk } from './lossy-disk.js'
import { payloadOf, SegmentRig, sha256 } from './rig.js'

const small = { segmentBytes: 65_536, maxBytes: 65_536 * 12 }
const roomy = { segmentBytes: 65_536, maxBytes: 65_536 * 1000 }

function segmentFiles(folder: string): string[] {
  return readdirSync(join(folder, 'segments'))
    .filter((name) => name.endsWith('.segment'))
    .map((name) => join(folder, 'segments', name))
}

t.test('stored content is read by every thread, and not written twice', async (t) => {
  const rig = new SegmentRig(scratch('segments'), roomy)
  for (const size of [0, 1, 439, 440, 441, 5000, 16_384]) {
    const bytes = payloadOf(size, size)
    const digest = sha256(bytes)
    const place = rig.store.put(digest, [bytes.subarray(0, size >> 1), bytes.subarray(size >> 1)])
    t.same(rig.store.put(digest, [bytes]), place)
    t.same(rig.store.find(digest), place)
    t.equal(rig.reader.find(digest), undefined, 'not in the index yet')
    t.ok((await rig.get(digest))?.equals(bytes), `${size} bytes`)
    rig.store.commit()
    t.same(rig.reader.find(digest), place)
  }
  t.equal(rig.marks.fileBytes, rig.store.fileBytes)
  const large = payloadOf(20_000, 1)
  const refused = rig.store.put(sha256(large), [large])
  t.equal(isRefusal(refused) && refused.refused, 'too-large')
  rig.store.remove(sha256(payloadOf(5000, 5000)))
  rig.store.commit()
  t.equal(rig.reader.find(sha256(payloadOf(5000, 5000))), undefined)
  await rig.close()
})

t.test('a reader keeps its bytes when the segment is removed, and disk space is freed', async (t) => {
  const rig = new SegmentRig(scratch('segments'), small)
  const bytes = payloadOf(10_000, 1)
  const place = rig.store.put(sha256(bytes), [bytes])
  const content = isRefusal(place) ? undefined : rig.reader.open(place, sha256(bytes))
  if (content === undefined) throw new Error('it was just put')
  for (let seed = 2; seed < 200; seed += 1)
    rig.store.put(sha256(payloadOf(10_000, seed)), [payloadOf(10_000, seed)])
  t.equal(rig.store.find(sha256(bytes)), undefined, 'it has gone')
  t.ok(
    rig.evicted.some((digest) => Buffer.compare(digest, sha256(bytes)) === 0),
    'and was told',
  )
  t.ok(content.copy()?.equals(bytes))
  content.spare()
  content.close()
  const used = segmentFiles(rig.folder).reduce((sum, path) => sum + statSync(path).size, 0)
  t.ok(used <= small.maxBytes, `${used} bytes on disk`)
  await rig.close()
})

t.test('content that is asked for or pinned stays, the rest is removed in order', async (t) => {
  const pinned = new Set([sha256(payloadOf(3000, 7)).toString('hex')])
  const rig = new SegmentRig(scratch('segments'), { ...small, pinned })
  const hot = [1, 2, 3].map((seed) => payloadOf(3000, seed))
  for (const bytes of [...hot, payloadOf(3000, 7)]) rig.store.put(sha256(bytes), [bytes])
  for (let seed = 100; seed < 1500; seed += 1) {
    const bytes = payloadOf(3000, seed)
    rig.store.put(sha256(bytes), [bytes])
    if (seed % 20 === 0) for (const one of hot) t.ok((await rig.get(sha256(one)))?.equals(one))
  }
  t.ok((await rig.get(sha256(payloadOf(3000, 7))))?.equals(payloadOf(3000, 7)), 'pinned')
  t.equal(rig.store.find(sha256(payloadOf(3000, 100))), undefined)
  t.ok((await rig.get(sha256(payloadOf(3000, 1499))))?.equals(payloadOf(3000, 1499)))
  await rig.close()
})

t.test('everything pinned: new content is refused, and nothing stops', async (t) => {
  const pinned = new Set(
    Array.from({ length: 500 }, (_, seed) => sha256(payloadOf(3000, seed)).toString('hex')),
  )
  const rig = new SegmentRig(scratch('segments'), { ...small, pinned })
  let refused = 0
  for (let seed = 0; seed < 500; seed += 1) {
    if (isRefusal(rig.store.put(sha256(payloadOf(3000, seed)), [payloadOf(3000, seed)]))) refused += 1
  }
  t.ok(refused > 0)
  await rig.close()
})

/** Many with MODEL_ROUNDS=1000; each has about 4 power cuts or damages and 7 kills or closes. */
const modelRounds = Number(process.env.MODEL_ROUNDS ?? 12)

t.test('a model: any order of put, get, remove, evict, kill, close, power cut and damage', async (t) => {
  t.setTimeout(1_200_000 + modelRounds * 5000)
  const counts = { kills: 0, closes: 0, cuts: 0, damages: 0 }
  for (let round = 0; round < modelRounds; round += 1) {
    const folder = scratch('segments')
    let disk = new LossyDisk()
    let rig = new SegmentRig(folder, { ...small, disk })
    /** Seeds that must be held: nothing evicted them, and no damage was done since. */
    const held = new Map<string, number>()
    const sizeOf = (seed: number): number => (seed * 7919) % 9000
    const forgetEvicted = (): void => {
      for (const digest of rig.evicted.splice(0)) held.delete(digest.toString())
    }
    for (let step = 0; step < 300; step += 1) {
      const chance = random()
      const seed = Math.floor(random() * 400)
      const { bytes, name: digest, put, isChunk } = recordOf(sizeOf(seed), seed)
      if (chance < 0.6) {
        if (!isRefusal(put(rig))) held.set(new Uint8Array(digest).toString(), seed)
      } else if (chance < 0.9) {
        const found = await rig.get(digest, random() < 0.5)
        if (found !== undefined && !found.equals(bytes)) throw new Error('wrong bytes')
        rig.store.commit()
        forgetEvicted()
        const isHeld = held.has(new Uint8Array(digest).toString())
        // Of chunks that were evicted nobody is told: nothing but the index says so.
        if (found === undefined && isHeld && (!isChunk || rig.store.find(digest) !== undefined))
          throw new Error(`seed ${seed} is lost`)
      } else if (chance < 0.93) {
        rig.store.remove(digest)
        held.delete(new Uint8Array(digest).toString())
      } else if (chance < 0.95) rig.store.commit()
      else if (chance < 0.96) rig.store.tend(50)
      else if (chance < 0.985) {
        // A kill: what was written is there, what was only removed may be there again.
        counts[chance < 0.975 ? 'kills' : 'closes'] += 1
        if (chance < 0.975) await rig.die()
        else await rig.close()
        forgetEvicted()
        disk = new LossyDisk()
        rig = new SegmentRig(folder, { ...small, disk })
      } else {
        counts[chance < 0.995 ? 'cuts' : 'damages'] += 1
        await rig.die()
        if (chance < 0.995) disk.cut(random)
        else hurt(folder)
        held.clear()
        disk = new LossyDisk()
        rig = new SegmentRig(folder, { ...small, disk })
      }
    }
    for (let seed = 0; seed < 400; seed += 1) {
      const { bytes, name } = recordOf(sizeOf(seed), seed)
      const found = await rig.get(name)
      if (found !== undefined && !found.equals(bytes)) throw new Error('wrong bytes')
    }
    await rig.close()
  }
  t.comment(`${modelRounds} rounds: ${JSON.stringify(counts)}`)
  t.pass('no wrong byte, and nothing was lost without a reason')
})

/** What a seed stands for: content, or in one case of four a chunk. */
function recordOf(sizeBytes: number, seed: number) {
  const bytes = payloadOf(sizeBytes, seed)
  const [chunk] = seed % 4 === 0 && sizeBytes > 0 ? chunksOf(bytes) : []
  if (chunk === undefined) {
    const name = sha256(bytes)
    return { bytes, name, isChunk: false, put: ({ store }: SegmentRig) => store.put(name, [bytes]) }
  }
  const name = nameOfChunk(chunk)
  const put = ({ store }: SegmentRig) => store.putChunk(name, encodeChunkWords(chunk), bytes)
  return { bytes, name, isChunk: true, put }
}

/** Flips bits of a segment, cuts one, or removes one. */
function hurt(folder: string): void {
  const paths = segmentFiles(folder)
  const path = paths[Math.floor(random() * paths.length)]
  if (path === undefined) return
  const chance = random()
  const bytes = readFileSync(path)
  if (chance < 0.6) {
    for (let flips = 0; flips < 20; flips += 1) {
      const at = Math.floor(random() * bytes.length)
      bytes[at] = (bytes[at] as number) ^ (1 << Math.floor(random() * 8))
    }
    writeFileSync(path, bytes)
  } else if (chance < 0.8) truncateSync(path, Math.floor(random() * bytes.length))
  else rmSync(path)
}

t.test('a segment that is cut or removed while it is read costs its content, not the program', async (t) => {
  const folder = scratch('segments')
  const first = new SegmentRig(folder, roomy)
  const payloads = Array.from({ length: 40 }, (_, seed) => payloadOf(4000, seed))
  for (const bytes of payloads) first.store.put(sha256(bytes), [bytes])
  await first.close()
  const rig = new SegmentRig(folder, roomy)
  t.ok((await rig.get(sha256(payloads[0] as Buffer)))?.equals(payloads[0] as Buffer))
  for (const path of segmentFiles(folder)) truncateSync(path, 2000)
  for (const bytes of payloads.slice(1)) t.equal(await rig.get(sha256(bytes)), undefined)
  for (const path of segmentFiles(folder)) rmSync(path)
  const again = payloads[5] as Buffer
  rig.store.remove(sha256(again))
  t.notOk(isRefusal(rig.store.put(sha256(again), [again])))
  t.ok((await rig.get(sha256(again)))?.equals(again))
  await rig.close()
  const third = new SegmentRig(folder, roomy)
  for (let steps = 0; steps < 100 && third.store.tend(1000); steps += 1);
  third.store.commit()
  t.equal(third.evicted.length, 39, 'what is gone was told')
  await third.close()
})

t.test(
  'a disk that is full or fails: nothing is kept, all goes on, and it is used again when it can',
  async (t) => {
    const disk = new LossyDisk()
    const rig = new SegmentRig(scratch('segments'), { ...small, disk })
    const before = payloadOf(3000, 1)
    rig.store.put(sha256(before), [before])
    for (const [call, code] of [
      ['write', 'EIO'],
      ['create', 'ENOSPC'],
      ['open', 'EIO'],
      ['read', 'EIO'],
      ['remove', 'EIO'],
    ] as const) {
      disk.fault = (one) => (one === call ? code : undefined)
      for (let seed = 0; seed < 400; seed += 1) {
        const bytes = payloadOf(3000, seed + 10)
        const place = rig.store.put(sha256(bytes), [bytes])
        const found = await rig.get(sha256(bytes))
        if (found !== undefined) t.ok(found.equals(bytes))
        else if (!isRefusal(place)) t.fail('said to be kept, and is not there')
      }
      disk.fault = () => undefined
      const after = payloadOf(3000, 5000)
      rig.store.remove(sha256(after))
      t.notOk(isRefusal(rig.store.put(sha256(after), [after])), `after ${call}`)
      t.ok((await rig.get(sha256(after)))?.equals(after))
    }
    await rig.close()
  },
)

t.test('an index that is damaged is begun anew', async (t) => {
  const folder = scratch('segments')
  const rig = new SegmentRig(folder, roomy)
  const bytes = payloadOf(3000, 1)
  rig.store.put(sha256(bytes), [bytes])
  await rig.close()
  writeFileSync(join(folder, 'segments', 'index', 'data.mdb'), Buffer.alloc(8192, 1))
  const again = new SegmentRig(folder, roomy)
  t.ok((await again.get(sha256(bytes)))?.equals(bytes), 'read from the segment itself')
  await again.close()
})
