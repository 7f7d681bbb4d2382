import {
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'

/** The fields of a quote that are counted. */
export interface BegunQuote {
  readonly id: string
  /** `open`: nobody has paid it. */
  readonly state: string
  readonly expiresMs: number
  readonly purchase?: { readonly nonce: string }
}

/** Quotes that nobody has paid yet, by the time at which they are over. */
const begunKind = 'card-quote-begun'
export const quoteKind = 'card-quote'

/** Time for which an expired quote is kept. A payment in time is reported or found by comparing within it. */
const keptMs = 2 * 3600_000
/** Read and removed in one go. */
const pageMax = 500

function begunKey({ id, expiresMs }: BegunQuote): string {
  return `${String(expiresMs).padStart(15, '0')}|${id}`
}

/** Written with a new quote. */
export function begun(quote: BegunQuote): RecordChange {
  return { kind: begunKind, key: begunKey(quote), value: '1' }
}

/** Written when it is paid, or ends otherwise. */
export function begunNoMore(quote: BegunQuote): RecordChange {
  return { kind: begunKind, key: begunKey(quote), value: undefined }
}

/** When the oldest quote that can be removed was over; undefined: none can be. */
export async function oldestDueMs(ledger: MoneyLedger, nowMs: number): Promise<number | undefined> {
  const [first] = await ledger.records(begunKind, '', '', 1)
  const overMs = Number(first?.key.slice(0, 15) ?? Number.NaN)
  return overMs < nowMs - keptMs ? overMs : undefined
}

/**
 * Removes quotes that were begun and never paid, two hours after they were over. `also`: what belongs to a quote and goes with
 * it. Resolves with how many were removed. Whatever was paid stays.
 */
export async function forgetBegun(
  ledger: MoneyLedger,
  nowMs: number,
  also: (quote: BegunQuote) => Promise<readonly RecordChange[]>,
): Promise<number> {
  const until = `${String(Math.max(0, nowMs - keptMs)).padStart(15, '0')}|`
  let removed = 0
  for (let after = ''; ; ) {
    const page = await ledger.records(begunKind, '', after, pageMax)
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
  also: (quote: BegunQuote) => Promise<readonly RecordChange[]>,
): Promise<boolean> {
  const mark = { kind: begunKind, key, value: undefined }
  const stored = await ledger.record(quoteKind, key.slice(key.indexOf('|') + 1))
  const quote = stored && (JSON.parse(stored.value) as BegunQuote)
  const records: RecordChange[] = [mark]
  if (stored !== undefined && quote?.state === 'open') {
    const gone = { kind: quoteKind, key: stored.key, value: undefined, expected: stored.version }
    records.push(gone, ...(await also(quote)))
  }
  return !isRejected(await ledger.commit({ transfers: [], records })) && records.length > 1
}
