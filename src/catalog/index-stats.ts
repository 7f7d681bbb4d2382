import { decodeSegmentList } from '../index/segment-list.js'
import type { BulkTotals } from './bulk-totals.js'
import { type IndexTables, segmentLedger } from './index-tables.js'

/** A part of the index on disk. */
export interface IndexPart {
  readonly part: string
  readonly entries: number
  readonly bytes: number
}

/** What the index takes on disk, by its parts; those of segments are sums over all of them. */
export interface IndexStats {
  readonly rows: number
  readonly tables: readonly IndexPart[]
  readonly runs: readonly IndexPart[]
  readonly sections: readonly IndexPart[]
  readonly segments: readonly {
    readonly number: number
    readonly level: number
    readonly rows: number
    readonly bytes: number
  }[]
  /** Merges whose segments are all there. */
  readonly mergesDue: number
  /** The last import in bulk, if there was one. */
  readonly bulk: BulkTotals | undefined
}

/** Reads what the index takes. Only tables that are open count: those of the catalog beside it, too. */
export function indexStats(tables: IndexTables): IndexStats {
  const live = tables.segments.all()
  const sections = new Map<string, number>()
  for (const { segment } of live) {
    for (const [part, bytes] of Object.entries(segment.sizes())) {
      sections.set(part, (sections.get(part) ?? 0) + bytes)
    }
  }
  const totals = tables.segments.totals()
  const inSegments = live.reduce((sum, { segment }) => sum + segment.count, 0)
  return {
    rows: tables.sets.counts().rows + tables.segments.count(),
    tables: tables.environment.usage().map(({ name, entries, bytes }) => ({ part: name, entries, bytes })),
    runs: tables.sets.sets.flatMap(({ runs: kinds, suffix }) =>
      Object.entries(kinds).map(([part, runs]) => {
        const entries = [...runs.files().values()].reduce((sum, { count }) => sum + count, 0)
        return { part: `runs of ${part}${suffix}`, entries, bytes: runs.bytes() }
      }),
    ),
    sections: [...sections].map(([part, bytes]) => ({
      part: `segments: ${part}`,
      entries: inSegments,
      bytes,
    })),
    segments: decodeSegmentList(segmentLedger(tables).read()).segments,
    mergesDue: totals.mergesDue,
    bulk: totals.bulk,
  }
}
