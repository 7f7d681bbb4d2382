import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { systemClock } from '../actor/clock.js'

/** Memory that all threads of the process share. */
const sharedName = 'sluice disk errors'
const memoryBytes = 16

/** What the disk refused to this process since its start. */
export interface DiskErrors {
  readonly count: number
  /** When the last one was (system clock); 0: there was none. */
  readonly lastMs: number
}

/** Whoever sees an error of the disk within such a time before says so: as long as it lasts, something meets it again. */
const recentMs = 30_000

/** One error may reach many waiting callers. */
const counted = new WeakSet<Error>()

/** To be called before any thread is started: from then on all of them count together. */
export function shareDiskErrors(): void {
  setEnvironmentData(sharedName, new SharedArrayBuffer(memoryBytes))
}

function shared(): { readonly counts: Int32Array; readonly times: Float64Array } | undefined {
  const memory = getEnvironmentData(sharedName)
  if (!(memory instanceof SharedArrayBuffer)) return undefined
  return { counts: new Int32Array(memory), times: new Float64Array(memory) }
}

/** Counts an error of the disk, once. */
export function countDiskError(error: unknown, nowMs = systemClock.now()): void {
  if (!(error instanceof Error) || counted.has(error)) return
  counted.add(error)
  const found = shared()
  if (found === undefined) return
  Atomics.add(found.counts, 0, 1)
  found.times[1] = nowMs
}

/** How many errors of the disk all threads have counted, and when the last one was (ms since 1970). */
export function diskErrors(): DiskErrors {
  const found = shared()
  return found === undefined
    ? { count: 0, lastMs: 0 }
    : { count: Atomics.load(found.counts, 0) >>> 0, lastMs: found.times[1] ?? 0 }
}

/** True where the disk has refused something a moment ago. */
export function isDiskFailing(nowMs: number): boolean {
  const { lastMs } = diskErrors()
  return lastMs > 0 && Math.abs(nowMs - lastMs) < recentMs
}
