import type { ChainWitness } from '../../admission/chain-witness.js'
import type { PaymentRecord } from '../../admission/payment-records.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import type { Transfer } from '../../ledger/transfer.js'
import { usdcSource, usdcTransferId } from './usdc-transfers.js'

/** What is known of settled payments besides the ledger. */
export interface X402Books {
  /** Absent: no node of the chain is configured. */
  readonly chain?: Pick<ChainWitness, 'paidBy'>
  /** Requested payments that have not ended, or were settled and never credited. */
  unended(): readonly PaymentRecord[]
}

/** A payment that was compared. `why`: what differs; `silent`: the chain did not answer. */
export interface X402Compared {
  readonly payment: string
  readonly why?: string
  readonly silent?: true
}

const pageMax = 500

/** Compares the payments in USDC of a day, by x402, with their chain and with the records of their settlement. */
export async function* comparedUsdc(
  ledger: MoneyLedger,
  { chain, unended }: X402Books,
  fromMs: number,
  endMs: number,
): AsyncGenerator<X402Compared> {
  for (const { payment, state, askedMs } of unended()) {
    if (askedMs < fromMs || askedMs >= endMs) continue
    if ((await ledger.transfer(usdcTransferId(payment))) !== undefined) continue
    const why = state === 'settled' ? 'settled, and not credited here' : 'its settlement has not ended'
    yield { payment, why }
  }
  if (chain === undefined) return
  for await (const transfer of creditedUsdc(ledger, fromMs, endMs)) {
    const { id, reference: transaction, about } = transfer
    const payment = id.slice(usdcTransferId('').length)
    const facts = {
      payment,
      payer: about.senderAddress ?? about.payer ?? '',
      units: about.tokenQuantity ?? '',
    }
    const found = await chain.paidBy(facts, transaction)
    if (found === 'unknown') yield { payment, silent: true }
    else if (found === 'no')
      yield { payment, why: `credited here, and its chain does not have it in ${transaction}` }
    else yield { payment }
  }
}

async function* creditedUsdc(ledger: MoneyLedger, fromMs: number, endMs: number): AsyncGenerator<Transfer> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    // Youngest first: what is older than the day ends it.
    const page = await ledger.history(usdcSource, before, pageMax)
    for (const transfer of page) {
      if (transfer.timeMs < fromMs) return
      if (transfer.timeMs < endMs && transfer.debit === usdcSource) yield transfer
    }
    const last = page.at(-1)
    if (last === undefined || page.length < pageMax) return
    before = last.sequence
  }
}
