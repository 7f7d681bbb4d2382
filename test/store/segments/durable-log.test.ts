import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isRefusal, type Refusal } from '../../../src/format/refusal.js'
import {
  DurableLog,
  type DurableLogOptions,
  durableLogDefaults,
} from '../../../src/store/segments/durable-log.js'
import type { LogPlace } from '../../../src/store/segments/log-file.js'
import type { LoggedItem } from '../../../src/store/segments/log-scan.js'
import { type RecordDigest, type SplitDigest, splitOf } from '../../../src/store/segments/segment-record.js'
import { random } from '../../property.js'
import { scratch } from '../../scratch.js'
import { LossyDisk } from './lossy-disk.js'

const options: DurableLogOptions = { fileBytes: 65_536, sharedMaxBytes: 20_000, growBytes: 50_000 }

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
const none = new Uint8Array(0)

function bytesOf(sizeBytes: number, seed: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes)
  for (let at = 0; at < sizeBytes; at += 1) bytes[at] = (at * 31 + seed * 7 + (at >> 8)) & 255
  return bytes
}

function good<T>(value: T | Refusal): T {
  if (isRefusal(value)) throw new Error(value.message)
  return value
}

function payloadOf(log: DurableLog, place: LogPlace): Buffer {
  return readFileSync(log.path(place)).subarray(place.offset, place.offset + place.sizeBytes)
}

async function opened(folder: string, disk?: LossyDisk): Promise<{ log: DurableLog; items: LoggedItem[] }> {
  const items: LoggedItem[] = []
  const log = await DurableLog.open(folder, options, (item) => items.push(item), disk)
  return { log, items }
}

async function streamed(log: DurableLog, bytes: Buffer, meta: Uint8Array): Promise<LogPlace | Refusal> {
  const draft = log.draft()
  for (let at = 0; at < bytes.length; at += 7000) {
    const failed = await draft.write(bytes.subarray(at, at + 7000))
    if (failed === undefined) continue
    await draft.discard()
    return failed
  }
  return draft.finish(digestOf(bytes), meta)
}

/** In two parts where there are bytes for it, and else of all. */
function digestOf(bytes: Buffer): RecordDigest {
  const frontBytes = bytes.length % 1000
  if (frontBytes === 0) return sha256(bytes)
  const rest = sha256(bytes.subarray(frontBytes))
  return { frontBytes, digest: sha256(Buffer.concat([bytes.subarray(0, frontBytes), rest])) }
}

function isOf(found: SplitDigest | undefined, bytes: Buffer): boolean {
  const { frontBytes, digest } = splitOf(digestOf(bytes))
  return found !== undefined && found.frontBytes === frontBytes && Buffer.compare(found.digest, digest) === 0
}

t.test('items are read after a restart, in order, with their metadata', async (t) => {
  const folder = join(scratch('log'), 'log')
  const first = await opened(folder)
  t.strictSame(first.items, [])
  const sizes = [0, 1, 511, 20_000, 20_001, 300, 170_000, 19_999, 50_000]
  const wanted = sizes.map((size, at) => ({ bytes: bytesOf(size, at), meta: Buffer.from(`item ${at}`) }))
  const places: LogPlace[] = []
  for (const { bytes, meta } of wanted) places.push(good(await streamed(first.log, bytes, meta)))
  for (const [at, place] of places.entries())
    t.ok(payloadOf(first.log, place).equals(wanted[at]?.bytes ?? none))
  await first.log.close()

  const second = await opened(folder)
  t.equal(second.log.found.torn, 0)
  const byMeta = new Map(second.items.map((item) => [Buffer.from(item.meta).toString(), item]))
  for (const [at, { bytes, meta }] of wanted.entries()) {
    const item = byMeta.get(meta.toString())
    t.same(item?.place, places[at])
    t.ok(isOf(item?.digest, bytes))
    t.ok(item !== undefined && payloadOf(second.log, item.place).equals(bytes))
  }
  for (const { place } of second.items) second.log.release(place)
  t.strictSame(
    readdirSync(folder).filter((name) => name.endsWith('.log')),
    [],
  )
  await second.log.close()

  const third = await opened(folder)
  const again = good(third.log.append([Buffer.from('x')], digestOf(Buffer.from('x'))))
  t.notOk(
    places.some(({ file }) => file === again.file),
    'a number is never given twice',
  )
  await third.log.close()
})

t.test('one flush serves all who wait', async (t) => {
  const folder = join(scratch('log'), 'log')
  let flushes = 0
  const disk = new LossyDisk()
  disk.fault = (call) => {
    if (call === 'sync') flushes += 1
    return undefined
  }
  const { log } = await opened(folder, disk)
  const places = Array.from({ length: 50 }, (_, at) =>
    good(log.append([bytesOf(100, at)], sha256(bytesOf(100, at)))),
  )
  const all = await Promise.all(places.map((place) => log.flushed(place)))
  t.ok(all.every((one) => one === true))
  t.ok(flushes <= 2, `${flushes} flushes`)
  await log.close()
})

t.test('a full or failing disk is a refusal, and what was durable stays', async (t) => {
  const folder = join(scratch('log'), 'log')
  const disk = new LossyDisk()
  const { log } = await opened(folder, disk)
  const kept = good(log.append([bytesOf(1000, 1)], digestOf(bytesOf(1000, 1)), Buffer.from('kept')))
  t.equal(await log.flushed(kept), true)
  for (const [call, code, word] of [
    ['write', 'EIO', 'failed'],
    ['create', 'ENOSPC', 'full'],
    ['sync', 'EIO', 'failed'],
    ['syncFolder', 'EIO', 'failed'],
  ] as const) {
    disk.fault = (one) => (one === call ? code : undefined)
    const bytes = bytesOf(15_000, 9)
    const large = await streamed(log, bytesOf(90_000, 3), none)
    if (call !== 'syncFolder' || isRefusal(large))
      t.ok(isRefusal(large) && large.message.includes(word), call)
    for (let tries = 0; tries < 6; tries += 1) {
      const place = log.append([bytes], digestOf(bytes))
      const end = isRefusal(place) ? place : await log.flushed(place)
      if (isRefusal(end)) t.match(end.message, word)
    }
    disk.fault = () => undefined
    t.notOk(isRefusal(await streamed(log, bytesOf(90_000, 4), none)), 'it goes on afterwards')
    const after = good(log.append([bytes], digestOf(bytes)))
    t.equal(await log.flushed(after), true)
  }
  await log.close()
  const again = await opened(folder)
  t.ok(again.items.some(({ meta }) => Buffer.from(meta).toString() === 'kept'))
  for (const { place, digest } of again.items) {
    t.ok(isOf(digest, payloadOf(again.log, place)), 'no item has wrong bytes')
  }
  await again.log.close()
})

t.test('what was refused because its flush failed is not found at the next start', async (t) => {
  const folder = join(scratch('log'), 'log')
  const disk = new LossyDisk()
  const { log } = await opened(folder, disk)
  const put = (name: string) => streamed(log, bytesOf(1000, 1), Buffer.from(name))
  t.notOk(isRefusal(await put('one')))
  disk.fault = (call) => (call === 'sync' ? 'EIO' : undefined)
  t.ok((await Promise.all([put('refused'), put('refused'), put('refused')])).every(isRefusal))
  disk.fault = () => undefined
  t.notOk(isRefusal(await put('two')))
  const again = await opened(folder)
  t.strictSame(
    again.items.map(({ meta }) => Buffer.from(meta).toString()),
    ['one', 'two'],
  )
  await log.close()
  await again.log.close()
})

t.test('what is taken back takes nothing behind it along', async (t) => {
  const wanted = (count: number) => Array.from({ length: count }, (_, at) => bytesOf(300 + at, at))
  const cases: readonly (readonly number[])[] = [[0], [1], [0, 1, 2], [3], [0, 1, 2, 3], []]
  for (const isClosed of [true, false])
    for (const taken of cases) {
      const folder = join(scratch('log'), 'log')
      const { log } = await opened(folder)
      const all = wanted(4)
      const places = all.map((bytes, at) => good(log.append([bytes], digestOf(bytes), Buffer.from(`${at}`))))
      const alone = good(await streamed(log, bytesOf(40_000, 9), Buffer.from('alone')))
      for (const place of places) await log.flushed(place)
      for (const at of taken) log.withdraw(places[at] as LogPlace, 1)
      if (taken.length === 1) log.withdraw(alone, 5)
      // A killed process closes nothing.
      if (isClosed) await log.close()
      for (const start of ['first', 'second']) {
        const again = await opened(folder)
        const left = all.flatMap((_, at) => (taken.includes(at) ? [] : [`${at}`]))
        const metas = again.items.map(({ meta }) => Buffer.from(meta).toString())
        const name = `${taken.join()} of 4, ${isClosed ? 'closed' : 'killed'}, ${start} start`
        t.strictSame(metas, taken.length === 1 ? left : [...left, 'alone'], name)
        t.strictSame(again.log.found.damaged, [], name)
        t.ok(
          again.items.every(({ place, digest }) => isOf(digest, payloadOf(again.log, place))),
          name,
        )
        await again.log.close()
      }
    }
})

t.test('on a small disk little is reserved at once', async (t) => {
  const folder = join(scratch('log'), 'log')
  const disk = new LossyDisk()
  disk.freeBytesStated = 8 * 2 ** 20
  const log = await DurableLog.open(folder, durableLogDefaults, () => undefined, disk)
  const [small, large] = [bytesOf(1000, 1), bytesOf(3 * 2 ** 20, 2)]
  const place = good(log.append([small], sha256(small)))
  t.equal(await log.flushed(place), true)
  t.equal(statSync(log.path(place)).size, 2 ** 20)
  const draft = log.draft()
  t.equal(await draft.write(large), undefined)
  const own = readdirSync(folder).map((name) => statSync(join(folder, name)).size)
  t.ok(Math.max(...own) <= 4 * 2 ** 20, `files of ${own} bytes`)
  const written = good(await draft.finish(sha256(large), none))
  t.ok(payloadOf(log, written).equals(large))
  await log.close()
})

t.test('an item that has only begun takes little more room than came of it', async (t) => {
  const folder = t.testdir()
  const log = await DurableLog.open(folder, { ...durableLogDefaults, sharedMaxBytes: 1000 }, () => undefined)
  const draft = log.draft()
  const held = (): number =>
    readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).blocks * 512, 0)
  for (const [pieces, most] of [
    [1, 2 ** 20],
    [40, 6 * 2 ** 20],
  ] as const) {
    for (let at = 0; at < pieces; at += 1) await draft.write(Buffer.alloc(65_536, 1))
    t.ok(held() <= most + 8192, `${held()} bytes on disk`)
  }
  await draft.discard()
  await log.close()
})

t.test('no power cut loses what was confirmed as durable', async (t) => {
  for (let round = 0; round < 100; round += 1) {
    const folder = join(scratch('log'), 'log')
    const durable = new Map<string, Buffer>()
    const released = new Set<string>()
    for (let life = 0; life < 3; life += 1) {
      const disk = new LossyDisk()
      const { log, items } = await opened(folder, disk)
      const known = new Map(items.map((item) => [Buffer.from(item.meta).toString(), item]))
      for (const [name, bytes] of durable) {
        const item = known.get(name)
        if (item === undefined && released.has(name)) continue
        if (item === undefined) throw new Error(`${name} is lost`)
        if (!payloadOf(log, item.place).equals(bytes)) throw new Error(`${name} has wrong bytes`)
      }
      for (const item of items) {
        if (!isOf(item.digest, payloadOf(log, item.place))) throw new Error('wrong bytes were told')
        if (random() < 0.3) {
          released.add(Buffer.from(item.meta).toString())
          log.release(item.place)
        }
      }
      const jobs: Promise<void>[] = []
      const count = Math.floor(random() * 12)
      for (let at = 0; at < count; at += 1) {
        const name = `${life} ${at}`
        const bytes = bytesOf(Math.floor(random() * (random() < 0.2 ? 100_000 : 12_000)), at)
        const job = streamed(log, bytes, Buffer.from(name)).then((place) => {
          if (!isRefusal(place)) durable.set(name, bytes)
        })
        if (random() < 0.5) await job
        else jobs.push(job)
      }
      // Whatever is under way at this moment stays unsaid: a word that comes later is not counted.
      const contents = new Map(durable)
      disk.cut(random)
      await Promise.allSettled(jobs)
      durable.clear()
      for (const [name, bytes] of contents) durable.set(name, bytes)
    }
  }
  t.pass('all were there')
})

t.test('of a damaged file only the damaged items are lost', async (t) => {
  const folder = join(scratch('log'), 'log')
  const { log } = await opened(folder)
  const places = Array.from({ length: 5 }, (_, at) =>
    good(log.append([bytesOf(2000, at)], sha256(bytesOf(2000, at)), Buffer.from(`${at}`))),
  )
  await log.close()
  const path = log.path(places[0] as LogPlace)
  const bytes = readFileSync(path)
  for (let round = 0; round < 40; round += 1) {
    const hurt = Buffer.from(bytes)
    const at = Math.floor(random() * hurt.length)
    hurt[at] = (hurt[at] as number) ^ (1 << Math.floor(random() * 8))
    writeFileSync(path, random() < 0.2 ? hurt.subarray(0, at) : hurt)
    const again = await opened(folder)
    for (const { meta } of again.items) t.match(Buffer.from(meta).toString(), /^[0-4]$/)
    await again.log.close()
  }
})
