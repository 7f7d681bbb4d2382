import type { MoneyLedger } from '../../ledger/ledger-port.js'

/** A page of a list whose records have keys that begin with one of several names of a wallet: the rest of each key, in order. */
export interface NamesPage {
  readonly places: readonly string[]
  /** Where the next page begins: behind this place; undefined: this was the last. */
  readonly next: string | undefined
}

/** Records of a kind whose keys begin with one of these names and `|`, behind a place, in the order of what stands there. */
export async function namesPage(
  ledger: Pick<MoneyLedger, 'recordSpans'>,
  kind: string,
  names: readonly string[],
  after: string,
  limit: number,
): Promise<NamesPage> {
  const [page = { places: [], next: undefined }] = await namesPages(ledger, kind, [names], after, limit)
  return page
}

/** A page of each of many such lists, all behind the same place, in one question to the ledger. */
export async function namesPages(
  ledger: Pick<MoneyLedger, 'recordSpans'>,
  kind: string,
  lists: readonly (readonly string[])[],
  after: string,
  limit: number,
): Promise<NamesPage[]> {
  const starts = lists.map((names) => names.map((name) => `${name}|`))
  const spans = starts.flat().map((start) => ({ start, after: after === '' ? '' : start + after }))
  const found = (await ledger.recordSpans(kind, spans, limit + 1)).values()
  return starts.map((list) => {
    const all = list.flatMap((start) => (found.next().value ?? []).map(({ key }) => key.slice(start.length)))
    all.sort((one, other) => (one < other ? -1 : 1))
    const places = all.slice(0, limit)
    return { places, next: all.length > limit ? places.at(-1) : undefined }
  })
}
