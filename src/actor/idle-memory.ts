import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'
import { ranMs, trimMemory } from '../../native/schedule/schedule.js'
import { systemClock } from './clock.js'

const turnMs = 1000
/** A thread whose loop was busy for less than this share of a turn counts as quiet: health checks and timers take less. */
const quietShare = 0.02
/** Quiet turns before memory is given back, so that a pause between requests is not taken for the end of the work. */
const quietTurns = 8
/** The first collection promotes what is alive out of the young generation; only later ones find it empty and shrink it. */
const collections = 3
/** Growth that is worth a collection. */
const growthBytes = 4 * 1024 * 1024

/**
 * Decides when a thread gives memory back. V8 collects garbage when something is allocated: a thread that has no work keeps what
 * its start or its last burst of work took (young generation of 32 MiB, garbage) for ever.
 */
export class IdleMemory {
  #quiet = 0
  #owed = 0
  #floorBytes = 0

  /** One turn is over: `busyShare` (0 to 1) of it was work, the heap has `heapBytes` now. Whether to collect garbage now. */
  turn(busyShare: number, heapBytes: number): boolean {
    if (busyShare > quietShare) {
      // Whoever asks now must not wait for what is left of the row: each collection moves all that is alive.
      this.#quiet = 0
      this.#owed = 0
      return false
    }
    this.#quiet += 1
    if (this.#owed === 0) {
      if (this.#quiet < quietTurns || heapBytes < this.#floorBytes + growthBytes) return false
      this.#owed = collections
    }
    this.#owed -= 1
    return true
  }

  /** The last collection of a row is done: the heap has `heapBytes` now. */
  collected(heapBytes: number): void {
    if (this.#owed === 0) this.#floorBytes = heapBytes
  }
}

/**
 * V8's own function that collects all garbage of a thread. Contexts have it that are made after the flag was set: those of all
 * threads, because their parent sets it before it starts them. The main thread takes it out of a second context, which stays.
 */
function collectorOfV8(): () => void {
  setFlagsFromString('--expose-gc')
  const own: unknown = Reflect.get(globalThis, 'gc')
  return (typeof own === 'function' ? own : runInNewContext('gc')) as () => void
}

/**
 * Makes what collects all garbage of this thread and moves what is alive together. Otherwise V8 moves nothing as long as memory
 * is not short, and a page stays for the few objects that are left in it.
 */
export function collector(): () => void {
  const collect = collectorOfV8()
  return () => {
    setFlagsFromString('--compact-on-every-full-gc')
    collect()
    setFlagsFromString('--no-compact-on-every-full-gc')
  }
}

/**
 * From now on this thread gives back memory that it does not need, whenever it has had nothing to do for some seconds. On the
 * main thread: also what the C library keeps for all threads.
 */
export function giveMemoryBack(): void {
  const memory = new IdleMemory()
  const busy = new BusyShare()
  const collect = collector()
  let untilTrim = quietTurns
  systemClock.every(turnMs, () => {
    if (memory.turn(busy.next(), getHeapStatistics().total_heap_size)) {
      collect()
      memory.collected(getHeapStatistics().total_heap_size)
      // The time of the collection is no work.
      busy.next()
    }
    if (!isMainThread) return
    untilTrim -= 1
    if (untilTrim > 0) return
    untilTrim = 2 * quietTurns
    if (isQuietProcess()) trimMemory()
  })
}

/**
 * Share of the time that this thread worked since the last question. By its processor time, because a thread that waits for
 * a processor is not busy; without the addon by the time of its event loop, which counts that wait, too.
 */
class BusyShare {
  #ranMs = ranMs()
  #atMs = systemClock.monotonic()
  #loop = performance.eventLoopUtilization()

  next(): number {
    const [ran, atMs, loop] = [ranMs(), systemClock.monotonic(), performance.eventLoopUtilization()]
    const share =
      ran === undefined || this.#ranMs === undefined
        ? performance.eventLoopUtilization(loop, this.#loop).utilization
        : (ran - this.#ranMs) / Math.max(1, atMs - this.#atMs)
    this.#ranMs = ran
    this.#atMs = atMs
    this.#loop = loop
    return share
  }
}

let used = process.cpuUsage()
let usedAtMs = 0

/** Whether all threads together took next to nothing of the processors since the last question. */
function isQuietProcess(): boolean {
  const nowMs = systemClock.monotonic()
  const { user, system } = process.cpuUsage(used)
  const share = (user + system) / 1000 / Math.max(1, nowMs - usedAtMs)
  used = process.cpuUsage()
  usedAtMs = nowMs
  return share < 0.1
}
