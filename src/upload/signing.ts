import { pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Pool } from '../actor/pool.js'
import { isRefusal } from '../format/refusal.js'

/** Signs with the wallet of the service: 512 bytes. */
export interface Signing {
  /** Over the 48 bytes of a receipt: the same signature each time. */
  receipt(message: Uint8Array): Promise<Uint8Array>
  /** Over what a transaction or data item signs. */
  data(message: Uint8Array): Promise<Uint8Array>
  /** Whoever asks now waits for others first. */
  readonly isBehind: boolean
  close(): Promise<void>
}

/** Receipts that wait for a hand: with the flows of the thread this bound is never the first that is met. */
const waitingMax = 65_536
const againMs = 20

/** Signs on a pool of threads (`workers/sign.ts`): one signature takes some 4 ms. The key is read there alone. */
export class PooledSigning implements Signing {
  readonly #pool: Pool
  #asked = 0

  constructor(
    private readonly keyFile: string,
    private readonly threads: number,
    log: Log,
  ) {
    this.#pool = new Pool({ file: 'sign', threads, waitingMax }, log)
  }

  receipt(message: Uint8Array): Promise<Uint8Array> {
    return this.#sign(message, 0)
  }

  data(message: Uint8Array): Promise<Uint8Array> {
    return this.#sign(message, 32)
  }

  get isBehind(): boolean {
    return this.#asked > this.threads
  }

  async #sign(message: Uint8Array, saltLength: number): Promise<Uint8Array> {
    this.#asked += 1
    try {
      for (;;) {
        const { keyFile } = this
        const signature = await this.#pool.run<Uint8Array>('rsa', { keyFile, message, saltLength })
        if (!isRefusal(signature)) return signature
        await pause(againMs)
      }
    } finally {
      this.#asked -= 1
    }
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}
