/** The last queries of this browser. Headers are not kept: they may hold secrets. */
const historyName = 'sluice-graphql-history'
const historyMax = 20
const keptTextMax = 20_000

/** The kept queries, newest first: {query, variables}. Empty where the browser keeps nothing for pages. */
export function readHistory(storage) {
  try {
    const kept = JSON.parse(storage().getItem(historyName) ?? '[]')
    const isOne = (one) => typeof one?.query === 'string' && typeof one.variables === 'string'
    return Array.isArray(kept) ? kept.filter(isOne).slice(0, historyMax) : []
  } catch {
    // Storage is turned off, or something else wrote there: as if nothing had been kept.
    return []
  }
}

/** Puts a query first; the same one is kept once. Gives what is kept then. */
export function noteQuery(storage, { query, variables }) {
  const others = readHistory(storage).filter((one) => one.query !== query || one.variables !== variables)
  const isKept = query.trim() !== '' && query.length + variables.length <= keptTextMax
  const kept = (isKept ? [{ query, variables }, ...others] : others).slice(0, historyMax)
  writeHistory(storage, kept)
  return kept
}

export function writeHistory(storage, kept) {
  try {
    if (kept.length === 0) storage().removeItem(historyName)
    else storage().setItem(historyName, JSON.stringify(kept))
  } catch {
    // Storage is turned off or full: the list lives as long as the page.
  }
}

/** One line that tells a query from others: its name, or its first fields. */
export function titleOf({ query }) {
  const words = query
    .replace(/#[^\n]*/g, '')
    .replace(/\s+/g, ' ')
    .trim()
  return words.length > 60 ? `${words.slice(0, 59)}…` : words
}
