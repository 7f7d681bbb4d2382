/** First groups of an address that count as one (IPv4 of 8 bits, IPv6 of 16), and what part of all places may be its own. */
const groupings = [
  { four: 4, six: 4, parts: 8 },
  { four: 3, six: 3, parts: 8 },
  { four: 2, six: 2, parts: 32 },
] as const

/** The groups of an address as `socket.remoteAddress` writes it; mapped IPv4 counts as IPv4. */
function groupsOf(address: string): { readonly isFour: boolean; readonly groups: readonly string[] } {
  const four = /(?:^|:)(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1]
  if (four !== undefined) return { isFour: true, groups: four.split('.') }
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : new Array<string>(8 - before.length - after.length).fill('0')
  return { isFour: false, groups: [...before, ...zeros, ...after] }
}

/**
 * Who holds more of `open` than a part of `places`: a client, its network, or its provider. What it has, and how many are too
 * many.
 */
export function hogOf<T extends { readonly who: string }>(
  open: readonly T[],
  places: number,
): { readonly has: readonly T[]; readonly beyond: number } {
  for (const { four, six, parts } of groupings) {
    const found = new Map<string, T[]>()
    let most: T[] = []
    for (const one of open) {
      const { isFour, groups } = groupsOf(one.who)
      const name = groups.slice(0, isFour ? four : six).join(' ')
      const ofName = found.get(name) ?? []
      ofName.push(one)
      found.set(name, ofName)
      if (ofName.length > most.length) most = ofName
    }
    const part = Math.max(1, Math.floor(places / parts))
    if (most.length > part) return { has: most, beyond: most.length - part }
  }
  return { has: [], beyond: 0 }
}

/** Who waits for so long at least has shown that it takes its time. The clock of a server moves once a second. */
const freshMs = 1500
/** So many of all places go last: those that were accepted last, as crowd.h has it. */
export const newestParts = 8

/** A connection that waits for its client, as `firstOf` judges it. */
export interface Waiting {
  /** 0: it was ended already; 1: it has never had an answer; 2: it is idle; 3: it sends a body. */
  readonly rank: number
  /** Milliseconds. */
  readonly since: number
  /** In the order in which connections were accepted. */
  readonly number: number
}

/**
 * Those that make room first, as crowd.h has them: by rank, then who has waited for longest; what is fresh goes last, and of that
 * connections with numbers above `newest`.
 */
export function firstOf<T extends { readonly waiting: Waiting | undefined }>(
  from: readonly T[],
  wanted: number,
  now: number,
  newest: number,
): readonly T[] {
  const turns = from.flatMap((one) => {
    const { waiting } = one
    if (waiting === undefined) return []
    const fresh = waiting.number > newest ? 8 : 4
    const rank = now - waiting.since < freshMs ? waiting.rank + fresh : waiting.rank
    return [{ one, ...waiting, rank }]
  })
  turns.sort((one, other) => one.rank - other.rank || one.since - other.since || one.number - other.number)
  return turns.slice(0, wanted).map(({ one }) => one)
}
