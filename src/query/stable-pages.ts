import { GraphQLError } from 'graphql'
import type { Page, PageRequest } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import type { Selection } from '../catalog/selection.js'
import type { StableHeights, WholeHeights } from '../clickhouse/heights.js'
import type { StableIndex } from '../clickhouse/stable-index.js'
import type { StableRow } from '../clickhouse/stable-row.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { QueryContext } from './context.js'

/** Code of the error where ClickHouse is needed and does not answer. */
export const indexUnavailable = 'INDEX_UNAVAILABLE'

/**
 * What ClickHouse gave for a selection. Its rows are in memory of their own. Those of the index here are read when the answer is
 * written and not before: they are views of the database, and change while one waits.
 */
export interface Older {
  /** The heights that belong to ClickHouse; undefined: none. */
  readonly heights: WholeHeights | undefined
  /** Absent where the page does not reach these heights. */
  readonly page?: Page<StableRow>
  readonly count?: number | undefined
  /** What the page was continued behind. */
  readonly after: Uint8Array | undefined
}

/** What one field of a query needs. */
export interface OlderWish {
  readonly wanted: Selection
  readonly request: PageRequest
  readonly takesCount: boolean
}

/** A part of the rows of a selection: of the index here, or of the heights that ClickHouse has. */
type Part = { readonly here: Selection } | { readonly heights: StableHeights }

/**
 * The parts of a selection in the order in which a page reads them. Each height belongs to one index, so that no row is given
 * twice, counts add up, and a cursor is the same place whoever goes on from it.
 */
function partsOf(wanted: Selection, heights: StableHeights | undefined, backwards: boolean): Part[] {
  if (heights === undefined) return [{ here: wanted }]
  const { from, to } = heights
  const parts: Part[] = [{ here: { ...wanted, aboveHeight: to } }, { heights }]
  if (from > 0) {
    const maxHeight = Math.min(wanted.maxHeight ?? from - 1, from - 1)
    parts.push({ here: { ...wanted, maxHeight } })
  }
  return backwards ? parts : parts.reverse()
}

/**
 * What an answer needs of ClickHouse, which gets a statement only where the page reaches its heights. Throws or rejects with what
 * the query is answered with instead.
 */
export function readOlder(
  wish: OlderWish,
  context: QueryContext,
  stable: StableIndex,
): Older | Promise<Older> {
  const heights = stable.heights()
  if (!(heights instanceof Promise)) return olderOf(wish, heights, context, stable)
  return away(context, () => heights).then((read) => olderOf(wish, read, context, stable))
}

function olderOf(
  wish: OlderWish,
  heights: WholeHeights | undefined,
  context: QueryContext,
  stable: StableIndex,
): Older | Promise<Older> {
  const { wanted, request, takesCount } = wish
  const { after, backwards } = request
  const left = heights === undefined ? undefined : leftForOlder(wish, heights, context)
  const needsCount = takesCount && heights !== undefined
  if (heights === undefined || (left === undefined && !needsCount)) return { heights, after }
  return (async () => {
    const page =
      left === undefined
        ? undefined
        : await away(context, () =>
            stable.rows(wanted, { backwards, after, limit: left }, heights, context.effort),
          )
    const count = needsCount
      ? await away(context, () => stable.count(wanted, heights, context.effort))
      : undefined
    for (const row of page?.entries ?? []) context.learn(row)
    context.effort.charge(page?.entries.length)
    return { heights, after, count, ...(page === undefined ? {} : { page }) }
  })()
}

/** Rows that are missing when the parts before have given theirs; undefined: the page ends before. */
function leftForOlder(
  { wanted, request }: OlderWish,
  heights: StableHeights,
  context: QueryContext,
): number | undefined {
  let left = request.limit
  for (const part of partsOf(wanted, heights, request.backwards)) {
    if (!('here' in part)) return left
    const counted = { ...request, limit: left, takesTags: false }
    const page = context.index.rows(part.here, counted, context.effort)
    if (page.more) return undefined
    left -= page.entries.length
  }
  return undefined
}

/** The page of both indexes. Throws a GraphQLError where the chain has changed so that they do not fit any more. */
export function pageOfBoth(
  { wanted, request }: Pick<OlderWish, 'wanted' | 'request'>,
  { heights, page: older, after }: Older,
  context: QueryContext,
): Page<Row> {
  const entries: Row[] = []
  for (const part of partsOf(wanted, heights, request.backwards)) {
    if ('here' in part) {
      const left = request.limit - entries.length
      const page = context.index.rows(part.here, { ...request, limit: left }, context.effort)
      entries.push(...page.entries)
      if (page.more) return { ...page, entries }
      continue
    }
    const isSame = Buffer.compare(after ?? none, request.after ?? none) === 0
    // There are fewer new rows than a moment ago.
    if (older === undefined && isSame && entries.length > 0) return { entries, more: true }
    if (older === undefined || !isSame) throw unavailable('blocks were replaced meanwhile, ask again')
    const fitting = older.entries.slice(0, request.limit - entries.length)
    const isCut = fitting.length < older.entries.length
    entries.push(...fitting.map(({ row }) => row))
    if (isCut) return { entries, more: true }
    if (older.more) return { ...older, entries }
  }
  return { entries, more: false }
}

const none = new Uint8Array(0)

/** The number of rows of both; undefined: counting takes too long. */
export function countOfBoth(
  wanted: Selection,
  { heights, count }: Older,
  context: QueryContext,
): number | undefined {
  let sum = 0
  for (const part of partsOf(wanted, heights, true)) {
    const counted = 'here' in part ? context.index.count(part.here, context.effort) : count
    if (counted === undefined) return undefined
    sum += counted
  }
  return sum
}

/** The row with this id, where the index here does not have it. Rejects with a GraphQLError. */
export async function olderRow(
  id: Uint8Array,
  context: QueryContext,
  stable: StableIndex,
): Promise<Row | undefined> {
  const heights = await away(context, async () => stable.heights())
  if (heights === undefined) return undefined
  const found = await away(context, () => stable.row(id, heights, context.effort))
  if (found === undefined) return undefined
  context.learn(found)
  return found.row
}

/** What another engine answers; the thread does something else meanwhile. Rejects with what a query is answered with instead. */
async function away<T>(context: QueryContext, ask: () => Promise<T | Refusal>): Promise<T> {
  const answer = await context.away(ask)
  context.effort.goOn()
  if (!isRefusal(answer)) return answer
  if (answer.refused === 'too-large') {
    throw new GraphQLError(
      'The index of older blocks needs more for this query than a query may take: narrow it, by heights for example, ' +
        'or ask for fewer rows',
      { extensions: { code: 'QUERY_TOO_EXPENSIVE' } },
    )
  }
  const why: Readonly<Record<string, string>> = {
    busy: 'too many queries wait for it, or it failed a moment ago',
    late: 'it does not answer in time',
  }
  throw unavailable(why[answer.refused] ?? 'it fails')
}

function unavailable(why: string): GraphQLError {
  return new GraphQLError(`The index of older blocks cannot be asked now: ${why}`, {
    extensions: { code: indexUnavailable },
  })
}
