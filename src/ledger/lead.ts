import { isRejected, type MoneyLedger, type RecordChange } from './ledger-port.js'

/** Value: how many processes have led the work so far, decimal. Key: the work. */
const kind = 'lead'

/**
 * A work that one process of all on a ledger does. Whoever begins to lead raises the number of the work in the ledger. What it
 * writes then goes by that number (`Fence`), so nothing is written by a process that stood still and was followed meanwhile.
 */
export class Lead {
  /** Version of the record that this process has written. */
  #version: number | undefined

  constructor(
    private readonly ledger: Pick<MoneyLedger, 'leads' | 'record' | 'commit'>,
    private readonly work: string,
  ) {}

  /** Before each piece of the work. Undefined: another process does it. Rejects where the ledger is gone. */
  async take(): Promise<Fence | undefined> {
    const { ledger, work: key } = this
    if (!(await ledger.leads(key))) return undefined
    const known = await ledger.record(kind, key)
    if (known === undefined || known.version !== this.#version) {
      const value = String(Number(known?.value ?? 0) + 1)
      const raised = { kind, key, value, expected: known?.version ?? 0 }
      const isRaised = !isRejected(await ledger.commit({ transfers: [], records: [raised] }))
      const written = isRaised ? await ledger.record(kind, key) : undefined
      if (written?.value !== value) return undefined
      this.#version = written.version
    }
    return { kind, key, value: undefined, added: 0n, expected: this.#version ?? 0 }
  }
}

/** Belongs to each order of who leads: the order is refused as `conflict` where another process leads now. Changes nothing. */
export type Fence = RecordChange & { readonly added: 0n }
