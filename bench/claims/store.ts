import { createHash, randomFillSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { isRefusal } from '../../src/format/refusal.js'
import { DurableLog } from '../../src/store/segments/durable-log.js'
import { marksBytes, SegmentMarks } from '../../src/store/segments/segment-marks.js'
import { SegmentReader } from '../../src/store/segments/segment-reader.js'
import { SegmentStore, segmentDefaults } from '../../src/store/segments/segment-store.js'
import { countFromCommandLine } from '../kit/counts.js'
import { say } from '../kit/say.js'

/**
 * Cost of storing small payloads: `node dist/bench/claims/store.js [payloads]`, 20,000 of 6 KiB by default, in the folder for
 * temporary files. Accepted content: SHA-256, appended, and said to be durable by group commit. Cached content: SHA-256, put
 * into a segment and into the index. Then each payload is looked up and opened as an edge thread does it, first and again.
 */
const payloads = countFromCommandLine(
  'store [PAYLOADS]: what storing small payloads costs (20000 of 6 KiB)',
  20_000,
)
const payloadBytes = 6 * 1024
const folder = mkdtempSync(join(tmpdir(), 'store-bench-'))

async function measure(name: string, act: () => Promise<void>): Promise<void> {
  const cpu = process.cpuUsage()
  const started = performance.now()
  await act()
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const each = ((user + system) / payloads).toFixed(1)
  say(`${name}: ${(payloads / seconds).toFixed(0)} payloads/s, ${each} us of processor each`)
}

async function accept(): Promise<void> {
  const log = await DurableLog.open(join(folder, 'log'))
  const bytes = randomFillSync(Buffer.alloc(payloadBytes))
  // As many at once as in a busy service, each waiting for its own confirmation.
  for (let done = 0; done < payloads; done += 256) {
    await Promise.all(
      Array.from({ length: Math.min(256, payloads - done) }, async (_, at) => {
        bytes.writeUInt32LE(done + at)
        const place = log.append([bytes], createHash('sha256').update(bytes).digest())
        const durable = isRefusal(place) ? place : await log.flushed(place)
        if (isRefusal(durable)) throw new Error(durable.message)
      }),
    )
  }
  await log.close()
}

const digestAt = (bytes: Buffer, at: number): Buffer => {
  bytes.writeUInt32LE(at)
  return createHash('sha256').update(bytes).digest()
}

async function cache(): Promise<void> {
  const shape = { cells: 4096, segmentBytes: segmentDefaults.segmentBytes }
  const marks = new SegmentMarks(new SharedArrayBuffer(marksBytes(shape)), shape)
  const options = {
    ...segmentDefaults,
    folder: join(folder, 'segments'),
    maxBytes: () => 2 ** 50,
    isPinned: () => false,
    onEvicted: () => undefined,
  }
  const store = SegmentStore.open(options, marks, systemClock, silentLog)
  const bytes = randomFillSync(Buffer.alloc(payloadBytes))
  const digests: Buffer[] = []
  await measure('cached', async () => {
    for (let at = 0; at < payloads; at += 1) {
      const digest = digestAt(bytes, at)
      digests.push(digest)
      if (isRefusal(store.put(digest, [bytes]))) throw new Error('it was not kept')
      // Gives timers a turn, as between two answers of a source.
      if (at % 64 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    store.commit()
  })
  const reader = new SegmentReader(options.folder, marks, systemClock)
  const read = async (): Promise<void> => {
    for (const digest of digests) {
      const place = reader.find(digest)
      const content = place === undefined ? undefined : reader.open(place, digest)
      if (content === undefined || !content.sound) throw new Error('it is not there')
      if (content.read(0, payloadBytes)?.length !== payloadBytes) throw new Error('it is not in memory')
      content.spare()
      content.close()
    }
  }
  await measure('looked up and read', read)
  await measure('once more', read)
  const { indexBytes, payloads: held } = store.usage()
  say(`index: ${(indexBytes / held).toFixed(0)} bytes a record`)
  await reader.close()
  await store.close()
}

await measure('accepted, flushed', accept)
await cache()
rmSync(folder, { recursive: true })
