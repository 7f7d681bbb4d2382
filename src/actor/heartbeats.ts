import { readFileSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { systemClock } from './clock.js'
import { giveMemoryBack } from './idle-memory.js'
import { ownThread } from './priority.js'

/**
 * Heartbeats of all threads of the process, in memory that they share. A slot is a thread's own: whether it is taken,
 * the kernel's number of the thread, how often it was heard from, its name in Latin-1, and its load. A thread that is
 * terminated leaves its slot taken; the reader sees by the kernel's number that the thread is gone.
 */
const slots = 256
const nameWords = 12
const loadWords = 6
const slotWords = 4 + nameWords + loadWords
const nameBytes = nameWords * 4

/** What a thread reports with a heartbeat. */
export interface Load {
  readonly heapUsedBytes: number
  readonly heapTotalBytes: number
  /** Longest delay of the event loop within the last 15 to 30 seconds. */
  readonly loopDelayMs: number
}

/** A load, and what the thread has had of the processors since it began. */
export interface ThreadLoad extends Load {
  readonly processorSeconds: number
}

export interface Heartbeat {
  readonly slot: number
  readonly name: string
  /** The kernel's number of the thread. */
  readonly thread: number
  /** Changes with each heartbeat. */
  readonly count: number
  readonly load: Load
}

/** Heartbeats of all threads, with their loads, in shared memory: each thread writes its own slot, any thread reads them. */
export class Heartbeats {
  static readonly bytes = slots * slotWords * 4
  readonly #words: Int32Array
  readonly #bytes: Buffer
  readonly #loads: Float64Array

  constructor(readonly memory = new SharedArrayBuffer(Heartbeats.bytes)) {
    this.#words = new Int32Array(memory)
    this.#bytes = Buffer.from(memory)
    this.#loads = new Float64Array(memory)
  }

  /** Takes a free slot for a thread; undefined where all are taken. */
  claim(name: string, thread: number): number | undefined {
    for (let slot = 0; slot < slots; slot += 1) {
      const at = slot * slotWords
      if (Atomics.compareExchange(this.#words, at, 0, 1) !== 0) continue
      this.#words[at + 1] = thread
      this.carry(slot, { heapUsedBytes: 0, heapTotalBytes: 0, loopDelayMs: 0 })
      this.#words[at + 3] = this.#bytes.write(name.slice(0, nameBytes), (at + 4) * 4, 'latin1')
      // Readers ignore the slot until this value is set.
      Atomics.store(this.#words, at, 2)
      return slot
    }
    return undefined
  }

  beat(slot: number): void {
    Atomics.add(this.#words, slot * slotWords + 2, 1)
  }

  /** Writes the load of the slot's thread. */
  carry(slot: number, { heapUsedBytes, heapTotalBytes, loopDelayMs }: Load): void {
    this.#loads.set([heapUsedBytes, heapTotalBytes, loopDelayMs], loadAt(slot))
  }

  #loadOf(slot: number): Load {
    const [heapUsedBytes = 0, heapTotalBytes = 0, loopDelayMs = 0] = this.#loads.subarray(loadAt(slot))
    return { heapUsedBytes, heapTotalBytes, loopDelayMs }
  }

  /** Gives the slot back. */
  free(slot: number): void {
    Atomics.store(this.#words, slot * slotWords, 0)
  }

  read(): Heartbeat[] {
    const found: Heartbeat[] = []
    for (let slot = 0; slot < slots; slot += 1) {
      const at = slot * slotWords
      if (Atomics.load(this.#words, at) !== 2) continue
      const name = this.#bytes.toString('latin1', (at + 4) * 4, (at + 4) * 4 + (this.#words[at + 3] ?? 0))
      const count = Atomics.load(this.#words, at + 2)
      found.push({ slot, name, thread: this.#words[at + 1] ?? 0, count, load: this.#loadOf(slot) })
    }
    return found
  }
}

/** Index of a slot's load among numbers of 8 bytes. */
function loadAt(slot: number): number {
  return (slot * slotWords + 4 + nameWords) / 2
}

const memoryKey = 'sluice.heartbeats'
const nameKey = 'sluice.thread'
const idleKey = 'sluice.idle'
const beatMs = 1000

/**
 * Threads that start from now on, and those that they start, write their heartbeats here, and give memory back after so many
 * seconds without work (`giveMemoryBack`). To be called on the main thread.
 */
export function listenForHeartbeats(heartbeats: Heartbeats, idleSeconds = 0): void {
  setEnvironmentData(memoryKey, heartbeats.memory)
  setEnvironmentData(idleKey, idleSeconds)
}

/** Names the next thread that starts; threads that it starts by itself are counted as its pool. */
export function nameNextThread(name: string): void {
  setEnvironmentData(nameKey, name)
}

/**
 * From now on this thread writes a heartbeat about once a second, from a timer of its event loop. `worker`: the thread
 * is one of the pool of another thread, of this kind. Returns a function that writes a heartbeat at once, for long
 * work. Does nothing where heartbeats are not read.
 */
export function keepHeartbeat(worker?: string): () => void {
  const memory = getEnvironmentData(memoryKey)
  if (!(memory instanceof SharedArrayBuffer)) return () => undefined
  const heartbeats = new Heartbeats(memory)
  const name = String(getEnvironmentData(nameKey))
  const slot = heartbeats.claim(worker === undefined ? name : `${name}/${worker}`, ownThread())
  if (slot === undefined) return () => undefined
  const beat = (): void => heartbeats.beat(slot)
  const lateness = new Lateness()
  if (worker === undefined) giveMemoryBack(Number(getEnvironmentData(idleKey)))
  systemClock.every(beatMs, () => {
    beat()
    const { used_heap_size: heapUsedBytes, total_heap_size: heapTotalBytes } = getHeapStatistics()
    // A pool thread blocks while it waits for a task, so a late timer there does not show a delay.
    const loopDelayMs = worker === undefined ? lateness.turn(systemClock.monotonic()) : 0
    heartbeats.carry(slot, { heapUsedBytes, heapTotalBytes, loopDelayMs })
  })
  process.once('exit', () => heartbeats.free(slot))
  return beat
}

/** Heartbeats in one window of `Lateness`. */
const windowHeartbeats = 15

/** The longest delay of a timer of `beatMs`, in this window of heartbeats and the one before. */
class Lateness {
  #lastMs: number | undefined
  #heartbeats = 0
  #worstMs = 0
  #beforeMs = 0

  /** The timer came at `nowMs`, by a clock that never goes back. Returns milliseconds. */
  turn(nowMs: number): number {
    const lateMs = this.#lastMs === undefined ? 0 : Math.max(0, nowMs - this.#lastMs - beatMs)
    this.#lastMs = nowMs
    this.#heartbeats += 1
    if (this.#heartbeats % windowHeartbeats === 0) {
      this.#beforeMs = this.#worstMs
      this.#worstMs = 0
    }
    this.#worstMs = Math.max(this.#worstMs, lateMs)
    return Math.max(this.#worstMs, this.#beforeMs)
  }
}

/** The last loads of the threads of this process, by thread name; empty where heartbeats are not read. */
export function loadsByName(): ReadonlyMap<string, ThreadLoad> {
  const memory = getEnvironmentData(memoryKey)
  const loads = new Map<string, ThreadLoad>()
  if (!(memory instanceof SharedArrayBuffer)) return loads
  for (const { name, thread, load } of new Heartbeats(memory).read()) {
    const other = loads.get(name) ?? {
      heapUsedBytes: 0,
      heapTotalBytes: 0,
      loopDelayMs: 0,
      processorSeconds: 0,
    }
    // The threads of one pool have one name: their memory is added up.
    loads.set(name, {
      heapUsedBytes: other.heapUsedBytes + load.heapUsedBytes,
      heapTotalBytes: other.heapTotalBytes + load.heapTotalBytes,
      loopDelayMs: Math.max(other.loopDelayMs, load.loopDelayMs),
      processorSeconds: other.processorSeconds + processorSecondsOf(thread),
    })
  }
  return loads
}

/** Seconds by the kernel's account; 0 where it keeps none, or the thread has ended meanwhile. */
function processorSecondsOf(thread: number): number {
  try {
    // "<ran ns> <waited ns> <turns>"
    return Number(readFileSync(`/proc/self/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e9
  } catch {
    return 0
  }
}

/** Whether a name is that of a pool thread. These block while they wait for a task, so missing heartbeats are no fault. */
export function isHand(name: string): boolean {
  return name.includes('/')
}
