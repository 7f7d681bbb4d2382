import type { Log } from '../../actor/log.js'
import { Pool } from '../../actor/pool.js'
import type { ItemHeader } from '../../format/item.js'
import type { ManifestLimits } from '../../format/manifest.js'
import type { Refusal } from '../../format/refusal.js'
import type { FilePart } from '../../store/blobs.js'
import type { ManifestPacker, PackingOutcome, PackingTask } from '../keeping/manifest-packer.js'
import type { BlobProver, JudgedPayloads, PayloadClaim } from './prover.js'

/** Files that wait for a worker at most. Beyond that a request is refused, and may come again. */
const waitingMax = 4096

/** A prover and packer whose work is done by a pool of threads (`workers/proof.ts`). */
export class PooledProver implements BlobProver, ManifestPacker {
  readonly #pool: Pool

  constructor(threads: number, log: Log) {
    this.#pool = new Pool({ file: 'proof', threads, waitingMax }, log)
  }

  digest(part: FilePart): Promise<Uint8Array | undefined | Refusal> {
    return this.#pool.run('digest', { part })
  }

  dataRoot(part: FilePart, sizeBytes: number): Promise<Uint8Array | undefined | Refusal> {
    return this.#pool.run('dataRoot', { part, sizeBytes })
  }

  isPayload(part: FilePart, header: ItemHeader): Promise<boolean | undefined | Refusal> {
    return this.#pool.run('isPayload', { part, header })
  }

  arePayloads(claims: readonly PayloadClaim[]): Promise<JudgedPayloads | Refusal> {
    return this.#pool.run('arePayloads', { claims })
  }

  pack(task: PackingTask): Promise<PackingOutcome | Refusal> {
    return this.#pool.run('packText', task)
  }

  check(task: { path: string; digest: Uint8Array; limits: ManifestLimits }): Promise<boolean | Refusal> {
    return this.#pool.run('checkPacked', task)
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}
