import { workerData } from 'node:worker_threads'
import { Locks } from '../../src/admission/locks.js'

/**
 * Takes one lock a hundred times, and counts how many hold it at once: now, at most, and in all. All `waiters` begin at the same
 * time, and whoever is the first holds the lock for so long that all others have looked whether its holder still lives.
 */
const { memory, bits, waiters } = workerData as { memory: SharedArrayBuffer; bits: number; waiters: number }
const locks = new Locks(new Int32Array(memory, 0, 4))
const counts = new Int32Array(memory, 16)
Atomics.add(counts, 4, 1)
while (Atomics.load(counts, 4) < waiters) Atomics.wait(counts, 5, 0, 1)
for (let turn = 0; turn < 100; turn += 1) {
  const at = locks.take(bits)
  const inside = Atomics.add(counts, 0, 1) + 1
  if (inside > (counts[1] ?? 0)) Atomics.store(counts, 1, inside)
  if (Atomics.add(counts, 2, 1) === 0) Atomics.wait(counts, 5, 0, 200)
  for (let work = 0; work < 2000; work += 1) Atomics.load(counts, 3)
  Atomics.sub(counts, 0, 1)
  locks.release(at)
}
