import type { MoneyLedger } from '../../ledger/ledger-port.js'

/** A page of a list that lies under several names: what stands behind the name in each key, in order. */
export interface NamesPage {
  readonly places: readonly string[]
  /** Where the next page begins: behind this place; undefined: this was the last. */
  readonly next: string | undefined
}

/** Records of a kind whose keys begin with one of these names and `|`, behind a place, in the order of what stands there. */
export async function namesPage(
  ledger: Pick<MoneyLedger, 'records'>,
  kind: string,
  names: readonly string[],
  after: string,
  limit: number,
): Promise<NamesPage> {
  const found = await Promise.all(
    names.map(async (name) => {
      const start = `${name}|`
      const from = after === '' ? '' : start + after
      const entries = await ledger.records(kind, start, from, limit + 1)
      return entries.map(({ key }) => key.slice(start.length))
    }),
  )
  const all = found.flat().sort((one, other) => (one < other ? -1 : 1))
  const places = all.slice(0, limit)
  return { places, next: all.length > limit ? places.at(-1) : undefined }
}
