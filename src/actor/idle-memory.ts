import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'
import { ranMs, trimMemory } from '../../native/schedule/schedule.js'
import { systemClock } from './clock.js'

const turnMs = 1000
/** A thread whose loop was busy for less than this share of a turn counts as quiet: health checks and timers take less. */
const quietShare = 0.02
/**
 * The same in the turn behind a collection: V8 sweeps the pages afterwards, on this thread. On a busy machine that took more than
 * the share above, so that each row of collections ended after its first one, and began anew for ever.
 */
const sweepingShare = 0.1
/** The first collection promotes what is alive out of the young generation; only later ones find it empty and shrink it. */
const collections = 3
/**
 * After its first row a thread waits for a quiet time that is so many times as long. A row makes V8 throw away optimized code
 * that depends on objects that are not alive any more: after each short pause of the traffic much of it would be compiled again.
 */
const laterTimes = 8
/** Growth that is worth a collection. */
const growthBytes = 4 * 1024 * 1024
/** What all threads together may take of one processor where the program counts as quiet. */
const quietProcessShare = 0.1

/** Whether all threads together took next to nothing of the processors in so many turns. */
function isQuiet(spentMs: number, turns: number): boolean {
  return spentMs <= turns * turnMs * quietProcessShare
}

/** What a thread knows of the last turn. */
export interface TurnUse {
  /** Share of it that the thread worked, 0 to 1. */
  readonly busyShare: number
  /** Memory of the thread's heap now. */
  readonly heapBytes: number
  /** Processor time of all threads since the process began. */
  readonly processMs: number
}

/**
 * Decides when a thread returns memory. V8 collects garbage at allocations, so a thread without work would keep the memory of its
 * start or last work for ever (young generation of 32 MiB, garbage). It is done only while the whole process is quiet, because
 * the collections after a start take more than a second of processor time.
 */
export class IdleMemory {
  /** Turns of the quiet time so far. */
  #quiet = 0
  /** Collections that are left of a row. */
  #owed = 0
  #floorBytes = 0
  /** `processMs` when the quiet time began. */
  #sinceMs = 0

  /** `quietTurns`: before memory is given back the first time, which is mostly that of the start. */
  constructor(private readonly quietTurns: number) {}

  /** One turn is over. Whether to collect garbage now. */
  turn({ busyShare, heapBytes, processMs }: TurnUse): boolean {
    if (busyShare > (this.#owed > 0 ? sweepingShare : quietShare)) {
      // Whoever asks now must not wait for what is left of the row: each collection moves all that is alive.
      this.#begin(processMs)
      this.#owed = 0
      return false
    }
    if (this.#owed === 0) {
      this.#quiet += 1
      const wanted = this.quietTurns * (this.#floorBytes === 0 ? 1 : laterTimes)
      if (this.#quiet < wanted) return false
      const isProcessQuiet = isQuiet(processMs - this.#sinceMs, wanted)
      this.#begin(processMs)
      if (!isProcessQuiet || heapBytes < this.#floorBytes + growthBytes) return false
      this.#owed = collections
    }
    this.#owed -= 1
    return true
  }

  /** The last collection of a row is done: the heap has `heapBytes` now. */
  collected(heapBytes: number): void {
    if (this.#owed === 0) this.#floorBytes = heapBytes
  }

  /** The quiet time begins anew. */
  #begin(processMs: number): void {
    this.#quiet = 0
    this.#sinceMs = processMs
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
 * From now on this thread gives back memory that it does not need, whenever it and all others have had nothing to do for so many
 * seconds; 0: never. On the main thread: also what the C library keeps for all threads.
 */
export function giveMemoryBack(idleSeconds: number): void {
  if (idleSeconds === 0) return
  const quietTurns = Math.ceil((idleSeconds * 1000) / turnMs)
  const memory = new IdleMemory(quietTurns)
  const busy = new BusyShare()
  const collect = collector()
  // Two quiet times between two looks at what the C library keeps.
  const trims = new Trims(2 * quietTurns)
  systemClock.every(turnMs, () => {
    const processMs = ranOfProcessMs()
    if (memory.turn({ busyShare: busy.next(), heapBytes: heapBytes(), processMs })) {
      collect()
      memory.collected(heapBytes())
      // The time of the collection is no work.
      busy.next()
    }
    if (isMainThread && trims.turn(processMs)) trimMemory()
  })
}

const heapBytes = (): number => getHeapStatistics().total_heap_size

/** Processor time of all threads since the process began. */
function ranOfProcessMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
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
        : (ran - this.#ranMs) / Math.max(turnMs, atMs - this.#atMs)
    this.#ranMs = ran
    this.#atMs = atMs
    this.#loop = loop
    return share
  }
}

/** Decides when the C library gives back what it keeps: where the whole process was quiet since the last look. */
class Trims {
  #turns = 0
  #sinceMs = 0

  /** `trimTurns`: between two looks. */
  constructor(private readonly trimTurns: number) {}

  /** One turn is over. Whether to trim now. */
  turn(processMs: number): boolean {
    this.#turns += 1
    if (this.#turns < this.trimTurns) return false
    const spentMs = processMs - this.#sinceMs
    this.#turns = 0
    this.#sinceMs = processMs
    return isQuiet(spentMs, this.trimTurns)
  }
}
