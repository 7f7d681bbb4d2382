import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { marksBytes, SegmentMarks } from '../../src/store/segments/segment-marks.js'
import { SegmentReader } from '../../src/store/segments/segment-reader.js'
import { SegmentStore } from '../../src/store/segments/segment-store.js'
import { countFromCommandLine } from '../kit/counts.js'
import { say } from '../kit/say.js'

/**
 * Hit rate of the segments, beside LRU and S3-FIFO with as many objects: `node dist/bench/claims/hit-rate.js [requests]`.
 * Traces: Zipf 0.9 over 20,000 objects, the same with a crawler that asks for 10 new objects after each 10 requests, and one
 * whose popular objects change. The cache holds a tenth of the objects.
 */
const requests = countFromCommandLine(
  'hit-rate [REQUESTS]: hits of the segments beside LRU and S3-FIFO, on three traces (200000 requests)',
  200_000,
)
const objects = 20_000
const held = 2000
const payloadBytes = 440
const recordBytes = 512

interface Cache {
  /** True: it was there. */
  ask(object: number): boolean
}

let state = 1

function chance(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return state / 2 ** 32
}

const sums: number[] = []
for (let rank = 1, sum = 0; rank <= objects; rank += 1) {
  sum += rank ** -0.9
  sums.push(sum)
}

/** An object by its popularity: 0 is asked for most. */
function zipf(): number {
  const wanted = chance() * (sums.at(-1) ?? 0)
  let low = 0
  let high = objects - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sums[middle] ?? 0) < wanted) low = middle + 1
    else high = middle
  }
  return low
}

const traces: Record<string, () => Iterable<number>> = {
  *zipf() {
    for (let at = 0; at < requests; at += 1) yield zipf()
  },
  *'zipf and a crawler'() {
    for (let at = 0; at < requests; at += 1) yield at % 20 < 10 ? zipf() : objects + at
  },
  *'zipf that moves'() {
    for (let at = 0; at < requests; at += 1) yield (zipf() + Math.floor(at / 20_000) * 500) % objects
  },
}

class Lru implements Cache {
  readonly #kept = new Map<number, true>()
  ask(object: number): boolean {
    const had = this.#kept.delete(object)
    this.#kept.set(object, true)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > held && oldest !== undefined) this.#kept.delete(oldest)
    return had
  }
}

/** As in the paper (Yang et al., SOSP 2023), counted in objects. */
class S3Fifo implements Cache {
  readonly #small = new Map<number, number>()
  readonly #main = new Map<number, number>()
  readonly #ghost = new Set<number>()
  ask(object: number): boolean {
    for (const queue of [this.#small, this.#main]) {
      const count = queue.get(object)
      if (count === undefined) continue
      queue.set(object, Math.min(3, count + 1))
      return true
    }
    while (this.#small.size + this.#main.size >= held) this.#evict()
    if (this.#ghost.delete(object)) this.#main.set(object, 0)
    else this.#small.set(object, 0)
    return false
  }
  #evict(): void {
    if (this.#small.size * 10 < held && this.#main.size > 0) {
      this.#evictMain()
      return
    }
    const [first] = this.#small
    if (first === undefined) return
    this.#small.delete(first[0])
    if (first[1] > 0) this.#main.set(first[0], 0)
    else {
      this.#ghost.add(first[0])
      const [oldest] = this.#ghost
      if (this.#ghost.size > held && oldest !== undefined) this.#ghost.delete(oldest)
    }
  }
  #evictMain(): void {
    for (;;) {
      const [first] = this.#main
      if (first === undefined) return
      this.#main.delete(first[0])
      if (first[1] === 0) return
      this.#main.set(first[0], first[1] - 1)
    }
  }
}

/** The store itself, with segments as small for its size as they are in use. */
class Segments implements Cache {
  readonly #folder = mkdtempSync(join(tmpdir(), 'hit-rate-'))
  readonly #store: SegmentStore
  readonly #reader: SegmentReader
  constructor() {
    const shape = { cells: 256, segmentBytes: (recordBytes * held) / 40 }
    const marks = new SegmentMarks(new SharedArrayBuffer(marksBytes(shape)), shape)
    const options = {
      folder: this.#folder,
      payloadMaxBytes: payloadBytes,
      freeMinBytes: 0,
      commitMs: 50,
      maxBytes: () => recordBytes * held,
      isPinned: () => false,
      onEvicted: () => undefined,
    }
    this.#store = SegmentStore.open(options, marks, systemClock, silentLog)
    this.#reader = new SegmentReader(this.#folder, marks, systemClock)
  }
  ask(object: number): boolean {
    const bytes = Buffer.alloc(payloadBytes)
    bytes.writeUInt32LE(object)
    const digest = createHash('sha256').update(bytes).digest()
    const place = this.#store.find(digest)
    const content = place === undefined ? undefined : this.#reader.open(place, digest)
    content?.spare()
    content?.close()
    if (content === undefined) this.#store.put(digest, [bytes])
    return content !== undefined
  }
  async close(): Promise<void> {
    await this.#reader.close()
    await this.#store.close()
    rmSync(this.#folder, { recursive: true })
  }
}

function hitRate(cache: Cache, trace: Iterable<number>): string {
  let hits = 0
  for (const object of trace) if (cache.ask(object)) hits += 1
  return `${((100 * hits) / requests).toFixed(1)} %`
}

for (const [name, trace] of Object.entries(traces)) {
  const rates: string[] = []
  for (const [of, make] of [
    ['LRU', () => new Lru()],
    ['S3-FIFO', () => new S3Fifo()],
  ] as const) {
    state = 1
    rates.push(`${of} ${hitRate(make(), trace())}`)
  }
  state = 1
  const segments = new Segments()
  rates.push(`segments ${hitRate(segments, trace())}`)
  await segments.close()
  say(`${name}: ${rates.join(', ')}`)
}
