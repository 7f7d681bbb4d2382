import {
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'

/** The fields of a quote that are counted. */
export interface UnpaidQuote {
  readonly id: string
  /** `open`: nobody has paid it. */
  readonly state: string
  readonly expiresMs: number
  readonly purchase?: { readonly nonce: string }
}

/** Quotes that nobody has paid yet, by the time at which they are over. */
const unpaidKind = 'card-quote-begun'
export const quoteKind = 'card-quote'

/** Time for which an expired quote is kept. A payment in time is reported or found by comparing within it. */
const keptMs = 2 * 3600_000
/** Read and removed in one go. */
const pageMax = 500

function unpaidKey({ id, expiresMs }: UnpaidQuote): string {
  return `${String(expiresMs).padStart(15, '0')}|${id}`
}

/** Written with a new quote. */
export function unpaidMark(quote: UnpaidQuote): RecordChange {
  return { kind: unpaidKind, key: unpaidKey(quote), value: '1' }
}

/** Written when it is paid, or ends otherwise. */
export function noUnpaidMark(quote: UnpaidQuote): RecordChange {
  return { kind: unpaidKind, key: unpaidKey(quote), value: undefined }
}

/** When the oldest quote that can be removed was over; undefined: none can be. */
export async function oldestDueMs(ledger: MoneyLedger, nowMs: number): Promise<number | undefined> {
  const [first] = await ledger.records(unpaidKind, '', '', 1)
  const overMs = Number(first?.key.slice(0, 15) ?? Number.NaN)
  return overMs < nowMs - keptMs ? overMs : undefined
}

/**
 * Removes quotes that were begun and never paid, two hours after they were over. `also`: what belongs to a quote and goes with
 * it. Resolves with how many were removed. Whatever was paid stays.
 */
export async function removeUnpaidQuotes(
  ledger: MoneyLedger,
  nowMs: number,
  also: (quote: UnpaidQuote) => Promise<readonly RecordChange[]>,
): Promise<number> {
  const until = `${String(Math.max(0, nowMs - keptMs)).padStart(15, '0')}|`
  let removed = 0
  for (let after = ''; ; ) {
    const page = await ledger.records(unpaidKind, '', after, pageMax)
    const due = page.filter(({ key }) => key < until)
    for (const one of due) if (await remove(ledger, one, also)) removed += 1
    if (due.length < pageMax) return removed
    after = due.at(-1)?.key ?? ''
  }
}

/** False: it was paid at this moment. Its mark went with that. */
async function remove(
  ledger: MoneyLedger,
  { key }: LedgerRecord,
  also: (quote: UnpaidQuote) => Promise<readonly RecordChange[]>,
): Promise<boolean> {
  const mark = { kind: unpaidKind, key, value: undefined }
  const stored = await ledger.record(quoteKind, key.slice(key.indexOf('|') + 1))
  const quote = stored && (JSON.parse(stored.value) as UnpaidQuote)
  const records: RecordChange[] = [mark]
  if (stored !== undefined && quote?.state === 'open') {
    const gone = { kind: quoteKind, key: stored.key, value: undefined, expected: stored.version }
    records.push(gone, ...(await also(quote)))
  }
  return !isRejected(await ledger.commit({ transfers: [], records })) && records.length > 1
}
