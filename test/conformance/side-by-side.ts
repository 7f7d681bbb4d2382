/** What two clients got for the same questions, freed of what is another one each time, and compared. */

/** A result as a plain value, or the status that a service refused with. */
export type Outcome = { readonly value: unknown } | { readonly refused: number | 'by the client' }

/** Runs one step; a refusal is an outcome. */
export async function outcomeOf(run: () => Promise<unknown>): Promise<Outcome & { readonly words?: string }> {
  try {
    return { value: await run() }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const { status, code } = error as { status?: number; code?: unknown }
    // Who sees by itself that a service would refuse it with 400 need not ask.
    return { refused: status ?? (code === 'invalid-input' ? 400 : 'by the client'), words: error.message }
  }
}

const changing: readonly [RegExp, string][] = [
  [/^[\w-]{680,690}$/, '<key or signature>'],
  [/^[\w-]{43}$/, '<id>'],
  [/^0x[0-9a-fA-F]{64}$/, '<transaction>'],
  [/^local_[0-9a-f]{32}$/, '<session>'],
  [/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, '<date>'],
  [/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, '<uuid>'],
]
const changingKeys = new Set(['timestamp', 'deadlineHeight', 'cursor', 'blockHeight', 'block', 'receiptId'])

/** The same value without ids, times and signatures. `names`: what stands for addresses. */
export function settled(value: unknown, names: ReadonlyMap<string, string>, key = ''): unknown {
  if (value === null || value === undefined) return value
  if (changingKeys.has(key)) return `<${key}>`
  // The library of the network divides with twenty decimal places, which loses digits of a price for one byte.
  if (key === 'tokenPrice') return Number(value).toPrecision(6)
  if (typeof value === 'string') {
    const named = names.get(value)
    if (named !== undefined) return named
    const kind = changing.find(([shape]) => shape.test(value))?.[1]
    if (kind !== undefined) return kind
    return /^https?:/.test(value) ? value.replace(/[\w-]{20,}/g, '<id>') : value
  }
  if (Array.isArray(value)) return value.map((one) => settled(one, names))
  if (typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => one !== undefined)
      .map(([name, one]) => [name, settled(one, names, name)]),
  )
}

/** Where `ours` lacks or differs from what `theirs` has, and what it has beyond. */
export interface Comparison {
  readonly different: readonly string[]
  readonly more: readonly string[]
}

export function compared(ours: unknown, theirs: unknown, at = ''): Comparison {
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null
  if (!isObject(ours) || !isObject(theirs) || Array.isArray(ours) !== Array.isArray(theirs)) {
    const isSame = JSON.stringify(ours) === JSON.stringify(theirs)
    const different = `${at}: ${JSON.stringify(ours)} and not ${JSON.stringify(theirs)}`
    return { different: isSame ? [] : [different], more: [] }
  }
  const below = Object.keys(theirs).map((key) => compared(ours[key], theirs[key], `${at}/${key}`))
  const own = Object.keys(ours).filter((key) => !(key in theirs))
  const grown = Array.isArray(ours) && own.length > 0 ? [`${at}: ${own.length} more`] : []
  return {
    different: [...below.flatMap(({ different }) => different), ...grown],
    more: [...below.flatMap(({ more }) => more), ...own.map((key) => `${at}/${key}`)],
  }
}

/** One short line of a result for a table. */
export function inShort(outcome: Outcome): string {
  if ('refused' in outcome) return `refused: ${outcome.refused}`
  const text = typeof outcome.value === 'string' ? outcome.value : JSON.stringify(outcome.value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
