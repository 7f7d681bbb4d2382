import { parentPort, workerData } from 'node:worker_threads'
import { Locks } from '../../src/admission/locks.js'

/**
 * Takes one lock. Without `holdMs` it ends with it; else it stands still for so long, then writes, frees the lock, and ends.
 */
const { memory, bits, holdMs } = workerData as { memory: SharedArrayBuffer; bits: number; holdMs?: number }
const cells = new Int32Array(memory, 0, 4)
const counts = new Int32Array(memory, 16)
const locks = new Locks(cells)
const at = locks.take(bits)
const held = cells[at]
if (held === undefined) throw new Error('no such lock')
parentPort?.postMessage('held')
if (holdMs !== undefined) {
  Atomics.wait(cells, at, held, holdMs)
  Atomics.store(counts, 0, 1)
  locks.release(at)
}
