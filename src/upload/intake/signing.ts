import { pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { Pool } from '../../actor/pool.js'
import { isRefusal } from '../../format/refusal.js'

/** Signs with the wallet of the service: 512 bytes. */
export interface Signing {
  /** Over the 48 bytes of a receipt: the same signature each time. */
  receipt(message: Uint8Array): Promise<Uint8Array>
  /** Over what a transaction or data item signs. */
  data(message: Uint8Array): Promise<Uint8Array>
  /** A new task waits for others first. */
  readonly isBehind: boolean
  close(): Promise<void>
}

/** Tasks that wait for a thread. The upload thread bounds its open requests lower, so this bound is never met first. */
const waitingMax = 65_536
/** Receipts of one task: a task costs something on both threads. The first of four waits for the last. */
const batchMax = 4
const againMs = 20

interface Waiting {
  readonly message: Uint8Array
  readonly resolve: (signature: Uint8Array) => void
  readonly reject: (error: unknown) => void
}

/** Signs on a pool of threads (`workers/sign.ts`): one signature takes some 4 ms. The key is read there alone. */
export class PooledSigning implements Signing {
  readonly #pool: Pool
  readonly #waiting: Waiting[] = []
  #pending = 0
  #running = 0

  constructor(
    private readonly keyFile: string,
    private readonly threads: number,
    log: Log,
  ) {
    this.#pool = new Pool({ file: 'sign', threads, waitingMax }, log)
  }

  receipt(message: Uint8Array): Promise<Uint8Array> {
    this.#pending += 1
    return new Promise<Uint8Array>((resolve, reject) => {
      this.#waiting.push({ message, resolve, reject })
      this.#begin()
    }).finally(() => {
      this.#pending -= 1
    })
  }

  async data(message: Uint8Array): Promise<Uint8Array> {
    return this.#sign([message], 32)
  }

  get isBehind(): boolean {
    return this.#pending > this.threads
  }

  /** Gives each thread a task. Several receipts go into one only where others would wait for the next ones of all threads. */
  #begin(): void {
    while (this.#running < this.threads && this.#waiting.length > 0) {
      const share = Math.ceil(this.#waiting.length / (2 * this.threads))
      const batch = this.#waiting.splice(0, Math.min(share, batchMax))
      this.#running += 1
      void this.#signBatch(batch).finally(() => {
        this.#running -= 1
        this.#begin()
      })
    }
  }

  async #signBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      const signatures = await this.#sign(
        batch.map(({ message }) => message),
        0,
      )
      const length = signatures.length / batch.length
      for (const [at, { resolve }] of batch.entries())
        resolve(signatures.subarray(at * length, (at + 1) * length))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  /** The signatures one behind the other. */
  async #sign(messages: readonly Uint8Array[], saltLength: number): Promise<Uint8Array> {
    // Memory of their own: of a view the whole memory behind it would be copied to the other thread.
    const task = {
      keyFile: this.keyFile,
      messages: messages.map((message) => new Uint8Array(message)),
      saltLength,
    }
    for (;;) {
      const signatures = await this.#pool.run<Uint8Array>('rsa', task)
      if (!isRefusal(signatures)) return signatures
      await pause(againMs)
    }
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}
