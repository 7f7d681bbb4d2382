import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { pause } from '../../src/actor/clock.js'

const lookMs = 10

/** The memory of this process without pages of files (`RssAnon`, proc_pid_status(5)), looked at by a thread of its own. */
export class OwnMemory {
  readonly #most = new Int32Array(new SharedArrayBuffer(4))
  readonly #worker = new Worker(fileURLToPath(import.meta.url), { workerData: this.#most })

  /** MiB at most since the last call. */
  takeMost(): number {
    return Math.round(Atomics.exchange(this.#most, 0, 0) / 1024)
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }
}

function ownKiB(): number {
  return Number(/RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? 0)
}

async function look(most: Int32Array): Promise<never> {
  for (;;) {
    const now = ownKiB()
    if (now > Atomics.load(most, 0)) Atomics.store(most, 0, now)
    await pause(lookMs)
  }
}

if (!isMainThread && workerData instanceof Int32Array) await look(workerData)
