import { BoundedMap } from '../../actor/bounded-map.js'
import { pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { Pool } from '../../actor/pool.js'
import { isRefusal } from '../../format/refusal.js'
import type { FreeReservation } from '../records/free-pools.js'

/** Whose receipt it is. Those of `free` items, and repeated ones, wait while there are `paid` ones. */
export type ReceiptRank = 'paid' | 'free'

/** The rank of an item's receipt, by what was taken of free bytes. Of wallets that the operator has named nothing is counted. */
export function rankOf(free: FreeReservation | undefined): ReceiptRank {
  return free === undefined || free.keys.length === 0 ? 'paid' : 'free'
}

/** Signs with the wallet of the service: 512 bytes. */
export interface Signing {
  /** Over the 48 bytes of a receipt: the same signature each time. */
  receipt(message: Uint8Array, rank: ReceiptRank): Promise<Uint8Array>
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
/** While both wait, one task of so many is of free receipts: they must not wait for ever. */
const freeEvery = 8
/** Signatures that are remembered, some 0.7 KB each: who posts an item again gets its receipt again. */
const rememberedMax = 4096
const againMs = 20

interface Waiting {
  readonly message: Uint8Array
  readonly resolve: (signature: Uint8Array) => void
  readonly reject: (error: unknown) => void
}

/** Signs on a pool of threads (`workers/sign.ts`): one signature takes some 4 ms. The key is read there alone. */
export class PooledSigning implements Signing {
  readonly #pool: Pool
  readonly #waiting: Readonly<Record<ReceiptRank, Waiting[]>> = { paid: [], free: [] }
  readonly #remembered = new BoundedMap<string, Uint8Array>(rememberedMax)
  /** Tasks of paid receipts that were begun while free ones waited. */
  #paidInARow = 0
  #pending = 0
  #running = 0

  constructor(
    private readonly keyFile: string,
    private readonly threads: number,
    log: Log,
  ) {
    this.#pool = new Pool({ file: 'sign', threads, waitingMax }, log)
  }

  async receipt(message: Uint8Array, rank: ReceiptRank): Promise<Uint8Array> {
    const name = Buffer.from(message).toString('latin1')
    const known = this.#remembered.get(name)
    if (known !== undefined) return known
    this.#pending += 1
    try {
      const signature = await new Promise<Uint8Array>((resolve, reject) => {
        this.#waiting[rank].push({ message, resolve, reject })
        this.#begin()
      })
      this.#remembered.set(name, signature)
      return signature
    } finally {
      this.#pending -= 1
    }
  }

  async data(message: Uint8Array): Promise<Uint8Array> {
    return this.#sign([message], 32)
  }

  get isBehind(): boolean {
    return this.#pending > this.threads
  }

  /** Gives each thread a task. Several receipts go into one only where others would wait for the next ones of all threads. */
  #begin(): void {
    while (this.#running < this.threads) {
      const line = this.#next()
      if (line.length === 0) return
      const share = Math.ceil(line.length / (2 * this.threads))
      const batch = line.splice(0, Math.min(share, batchMax))
      this.#running += 1
      void this.#signBatch(batch).finally(() => {
        this.#running -= 1
        this.#begin()
      })
    }
  }

  /** The line of which the next task is. */
  #next(): Waiting[] {
    const { paid, free } = this.#waiting
    const isOfPaid = paid.length > 0 && (free.length === 0 || this.#paidInARow < freeEvery - 1)
    this.#paidInARow = isOfPaid && free.length > 0 ? this.#paidInARow + 1 : 0
    return isOfPaid ? paid : free
  }

  async #signBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      const signatures = await this.#sign(
        batch.map(({ message }) => message),
        0,
      )
      const length = signatures.length / batch.length
      for (const [at, { resolve }] of batch.entries())
        resolve(signatures.slice(at * length, (at + 1) * length))
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
