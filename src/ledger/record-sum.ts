import { createHash, hash } from 'node:crypto'

const sumBytes = 32

/** The sum of no records. Sums are hex. */
export const noRecords = '00'.repeat(sumBytes)

/**
 * A sum of all records: the exclusive or of SHA-256 of each (kind, 0, key, 0, version, 0, value). So a record is added or removed
 * in any order, without the others. It finds accidental changes, not an attacker's: unlike the chain of transfers it is not
 * signed.
 */
export class RecordSum {
  readonly #sum: Buffer

  constructor(sum: string = noRecords) {
    this.#sum = Buffer.from(sum, 'hex')
    if (this.#sum.length !== sumBytes) throw new Error(`ledger: the sum of the records is ${sum}`)
  }

  /** Takes a record in, or out again. */
  flip(kind: string, key: string, version: number, value: string): void {
    const added = hash('sha256', `${kind}\0${key}\0${version}\0${value}`, 'buffer')
    for (let at = 0; at < sumBytes; at += 1) this.#sum[at] = (this.#sum[at] ?? 0) ^ (added[at] ?? 0)
  }

  get text(): string {
    return this.#sum.toString('hex')
  }
}

/** What changes of records that lie one behind the other make: SHA-256 over the value before, and the change as it is stored. */
export function nextChanges(before: string, change: Uint8Array): string {
  return createHash('sha256').update(before, 'hex').update(change).digest('hex')
}
