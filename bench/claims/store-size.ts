import { createHash, randomFillSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { isRefusal } from '../../src/format/refusal.js'
import { marksBytes, SegmentMarks } from '../../src/store/segments/segment-marks.js'
import { SegmentReader } from '../../src/store/segments/segment-reader.js'
import { SegmentStore, segmentDefaults } from '../../src/store/segments/segment-store.js'
import { countsFromCommandLine } from '../kit/counts.js'
import { say } from '../kit/say.js'

/**
 * What the number of records costs: `node --expose-gc dist/bench/claims/store-size.js [records...]`, by default 1,000, 20,000,
 * 200,000 and 1,000,000, of one slot each (512 bytes), in the folder for temporary files. For each: bytes of the index, the
 * time to open the store again, memory of the process for it (without pages of files), and what it costs to look a record up, to
 * open and to read it: 200,000 by chance, each record as likely as any other.
 */
const sizes = countsFromCommandLine(
  'store-size [RECORDS...]: index, memory and look-ups by the number of records (1000 20000 200000 1000000)',
  [1000, 20_000, 200_000, 1_000_000],
)
const asks = 200_000
const payloadBytes = 440

/** Bytes of the process that are not pages of files. */
function ownBytes(): number {
  global.gc?.()
  const found = /^Anonymous:\s+(\d+) kB/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))
  return Number(found?.[1]) * 1024
}

/** Runs `act`, and gives the time and the processor time that it took, in ms. */
function timed<Found>(act: () => Found): { found: Found; ms: number; cpuMs: number } {
  const cpu = process.cpuUsage()
  const from = performance.now()
  const found = act()
  const { user, system } = process.cpuUsage(cpu)
  return { found, ms: performance.now() - from, cpuMs: (user + system) / 1000 }
}

const bytes = randomFillSync(Buffer.alloc(payloadBytes))

function payload(at: number): Buffer {
  bytes.writeUInt32LE(at)
  return bytes
}

function digestOf(at: number): Buffer {
  return createHash('sha256').update(payload(at)).digest()
}

async function measure(records: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'store-size-'))
  const { segmentBytes } = segmentDefaults
  const shape = { cells: Math.ceil((records * 512) / segmentBytes) * 2 + 64, segmentBytes }
  const options = {
    ...segmentDefaults,
    folder: join(folder, 'segments'),
    maxBytes: () => 2 ** 50,
    isPinned: () => false,
    onEvicted: () => undefined,
  }
  const marksOf = () => new SegmentMarks(new SharedArrayBuffer(marksBytes(shape)), shape)
  const first = SegmentStore.open(options, marksOf(), systemClock, silentLog)
  for (let at = 0; at < records; at += 1) {
    if (isRefusal(first.put(digestOf(at), [payload(at)]))) throw new Error('it was not kept')
    if (at % 256 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  first.commit()
  const { indexBytes } = first.usage()
  await first.close()
  const chosen = Array.from({ length: asks }, () => digestOf(Math.floor(Math.random() * records)))
  const before = ownBytes()
  const marks = marksOf()
  const { found: store, ...opening } = timed(() => SegmentStore.open(options, marks, systemClock, silentLog))
  const reader = new SegmentReader(options.folder, marks, systemClock)
  const look = (act: (digest: Buffer) => void) => (timed(() => chosen.forEach(act)).cpuMs * 1000) / asks
  const find = (digest: Buffer) => {
    const place = reader.find(digest)
    if (place === undefined) throw new Error('it is not there')
    return place
  }
  const read = (digest: Buffer): void => {
    const content = reader.open(find(digest), digest)
    if (content?.verifyNow() !== true) throw new Error('it is not what it was')
    content.spare()
    content.close()
  }
  look(read)
  const [placed, whole] = [look(find), look(read)]
  const own = ownBytes() - before
  say(
    `${records} records: ${(indexBytes / records).toFixed(0)} bytes of index each; opened in ${opening.ms.toFixed(0)} ms ` +
      `(${opening.cpuMs.toFixed(0)} of processor); found in ${placed.toFixed(2)} us, ` +
      `opened and marked in ${whole.toFixed(2)} us; ` +
      `${(own / 2 ** 20).toFixed(1)} MiB of memory`,
  )
  await reader.close()
  await store.close()
  rmSync(folder, { recursive: true })
}

for (const records of sizes) await measure(records)
