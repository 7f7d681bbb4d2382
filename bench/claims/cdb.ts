import { randomFillSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import { LocalBands } from '../../src/bands/local-bands.js'
import { RootIndexWriter } from '../../src/bands/root-writer.js'
import { type CdbFile, CdbSearch, closeCdb, openCdb } from '../../src/store/cdb-reader.js'
import { countFromCommandLine } from '../kit/counts.js'
import { say } from '../kit/say.js'

/**
 * Root-transaction index: how fast it is built (sorted outside of memory, written, checked, read back) and looked into. `node
 * dist/bench/claims/cdb.js [records]`; The claims are about 5,000,000; the default is 300,000.
 */
const records = countFromCommandLine(
  'cdb [RECORDS]: how fast the root-transaction index is built and looked into (300000 records)',
  300_000,
)
const lookups = 300_000
const folder = mkdtempSync(join(tmpdir(), 'cdb-bench-'))
const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`

/** The keys of one block of 65,536, the same in each run. */
function keysOf(block: number): Buffer {
  const keys = Buffer.alloc(32 * 65_536)
  // Cheap, and distributed evenly, as digests are.
  const words = new Uint32Array(keys.buffer, keys.byteOffset, keys.length / 4)
  let state = (block * 2_654_435_761 + 1) >>> 0
  for (let at = 0; at < words.length; at += 1) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[at] = Math.imul(state, 0x9e3779b1)
  }
  return keys
}

async function build(): Promise<void> {
  mkdirSync(join(folder, 'band'))
  const blocks = Array.from({ length: Math.ceil(records / 65_536) }, (_, block) => keysOf(block))
  const root = randomFillSync(Buffer.alloc(32))
  const before = process.memoryUsage.rss()
  const started = performance.now()
  const cpu = process.cpuUsage()
  let peak = before
  const writer = new RootIndexWriter(join(folder, 'band'))
  // Each id is copied into one buffer, so that making views is not measured.
  const id = Buffer.alloc(32)
  for (let record = 0; record < records; record += 1) {
    const block = blocks[record >> 16] as Buffer
    const at = (record & 65_535) * 32
    const itemOffset = 4096 + (record % 50_000)
    for (let byte = 0; byte < 32; byte += 1) id[byte] = block[at + byte] as number
    writer.add(id, { path: [root], itemOffset, dataOffset: itemOffset + 1100 }, record >> 10)
    if ((record & 0x3ffff) === 0) peak = Math.max(peak, process.memoryUsage.rss())
  }
  const fed = performance.now()
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss())
  }, 50)
  const written = await writer.finish(new Date().toISOString(), {})
  clearInterval(timer)
  const seconds = (performance.now() - started) / 1000
  const spent = process.cpuUsage(cpu)
  const cpuSeconds = (spent.user + spent.system) / 1e6
  say(
    `build: ${written.records} records in ${seconds.toFixed(2)} s (${((fed - started) / 1000).toFixed(2)} s dealing): ` +
      `${Math.round(records / seconds)} records/s` +
      `, ${Math.round(records / cpuSeconds)} a second of processor time; memory grew by ${mebibytes(peak - before)} at most`,
  )
}

/**
 * Looks up keys in random order, as requests do; twice, and the second time counts. Returns look-ups per second of processor
 * time.
 */
function measure(word: string, keys: Buffer, look: (key: Buffer) => boolean): number {
  const count = Math.min(65_536, records)
  const ids = Array.from({ length: count }, (_, at) => keys.subarray(at * 32, at * 32 + 32))
  let perCpu = 0
  for (let warm = 0; warm < 2; warm += 1) {
    let found = 0
    const started = performance.now()
    const cpu = process.cpuUsage()
    for (let at = 0; at < lookups; at += 1) {
      if (look(ids[(at * 40_503) % count] as Buffer)) found += 1
    }
    const seconds = (performance.now() - started) / 1000
    const spent = process.cpuUsage(cpu)
    perCpu = Math.round(lookups / ((spent.user + spent.system) / 1e6))
    if (warm === 1)
      say(
        `${word}: ${Math.round(lookups / seconds)} lookups/s, ${perCpu} a second of processor time; ${found} found`,
      )
  }
  return perCpu
}

function read(): void {
  const present = keysOf(1 % Math.ceil(records / 65_536))
  const absent = keysOf(1_000_003)
  const search = new CdbSearch()
  for (const mapped of [false, true]) {
    const files = Array.from({ length: 256 }, (_, first) =>
      openCdb(join(folder, 'band', `${first.toString(16).padStart(2, '0')}.cdb`), mapped),
    )
    const [first] = files
    if (typeof first !== 'object') throw new Error('no first partition')
    if (!mapped) rule(first)
    const way = first.pages === undefined ? 'read' : 'in place'
    const look = (key: Buffer): boolean => search.find(files[key[0] as number] as CdbFile, key) === 'found'
    measure(`hits, ${way}`, present, look)
    measure(`misses, ${way}`, absent, look)
    for (const file of files) if (typeof file === 'object') closeCdb(file)
  }
  const bands = new LocalBands([folder], systemClock, 30_000, true)
  measure('hits, from id to place', present, (key) => bands.find(key) !== undefined)
  measure('misses, from id to place', absent, (key) => bands.find(key) !== undefined)
  bands.close()
}

/** For comparison on a machine that is used by others as well: the cost of a plain read of 64 bytes at the same time. */
function rule({ file, sizeBytes }: CdbFile): void {
  const buffer = Buffer.alloc(64)
  const cpu = process.cpuUsage()
  for (let at = 0; at < lookups; at += 1) {
    readSync(file, buffer, 0, 64, ((at * 40_503) % (sizeBytes - 64)) & ~63)
  }
  const spent = process.cpuUsage(cpu)
  say(
    `plain reads of 64 bytes: ${Math.round(lookups / ((spent.user + spent.system) / 1e6))} a second of processor time`,
  )
}

try {
  await build()
  read()
} finally {
  rmSync(folder, { recursive: true })
}
