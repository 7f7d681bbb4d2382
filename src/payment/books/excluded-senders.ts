import { spelled } from './wallets.js'

/** Senders whose payments are not taken, whichever way they come. */
export class ExcludedSenders {
  #senders: ReadonlySet<string> = new Set()

  constructor(senders: readonly string[]) {
    this.use(senders)
  }

  /** From now on. What was reported before, or requested to be settled, is taken. */
  use(senders: readonly string[]): void {
    this.#senders = new Set(senders.map(spelled))
  }

  /** In any spelling. */
  has(sender: string): boolean {
    return this.#senders.has(spelled(sender))
  }
}
