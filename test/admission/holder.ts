import { parentPort, workerData } from 'node:worker_threads'
import { Locks } from '../../src/admission/locks.js'

/** What a thread that holds a lock is to do. */
export interface HolderOrder {
  readonly memory: SharedArrayBuffer
  /** Where the locks lie, in bytes, and how many there are. */
  readonly offset: number
  readonly cells: number
  readonly bits: number
  /** Numbers that the lock guards: place and count. */
  readonly guarded: readonly [offset: number, count: number]
  /** It stands still for so long while it holds the lock. Absent: it ends and leaves the lock behind. */
  readonly holdMs?: number
}

/** Takes one lock, reads what it guards, stands still, writes the same numbers, and frees the lock. */
const { memory, offset, cells, bits, guarded, holdMs } = workerData as HolderOrder
const numbers = new Float64Array(memory, ...guarded)
const never = new Int32Array(new SharedArrayBuffer(4))
const locks = new Locks(new Int32Array(memory, offset, cells))
const at = locks.take(bits)
const before = numbers.slice()
parentPort?.postMessage('held')
if (holdMs !== undefined) {
  Atomics.wait(never, 0, 0, holdMs)
  numbers.set(before)
  locks.release(at)
}
