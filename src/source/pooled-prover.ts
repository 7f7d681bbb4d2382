import type { Log } from '../actor/log.js'
import { Pool } from '../actor/pool.js'
import type { ItemHeader } from '../format/item.js'
import type { BlobProver } from './prover.js'

/** Files waiting for a hand at most: beyond that the asker is told to come again by a rejection. */
const waitingMax = 4096

/** A prover whose work is done by a pool of threads (`workers/proof.ts`). */
export class PooledProver implements BlobProver {
  readonly #pool: Pool

  constructor(threads: number, log: Log) {
    this.#pool = new Pool({ file: 'proof', threads, waitingMax }, log)
  }

  digest(path: string): Promise<Uint8Array | undefined> {
    return this.#pool.run('digest', { path })
  }

  dataRoot(path: string, sizeBytes: number): Promise<Uint8Array | undefined> {
    return this.#pool.run('dataRoot', { path, sizeBytes })
  }

  isPayload(path: string, header: ItemHeader): Promise<boolean | undefined> {
    return this.#pool.run('isPayload', { path, header })
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}
