import type { HeightRange } from './publication.js'

/**
 * How the heights of an index are cut into bands. `h`, history: whole cells of a fixed grid, never built again. `r`,
 * recent: the settled blocks above the last of them, rebuilt from time to time. `d`, delta: the rest up to the tip.
 */
export type Role = 'h' | 'r' | 'd'

export interface RootBandName {
  readonly id: string
  readonly role: Role
  readonly range: HeightRange
}

export interface PlannedBand {
  readonly role: Role
  readonly range: HeightRange
  readonly supersedes: readonly string[]
}

/** Blocks that a delta shares with the band below it: forks are never so deep. */
const overlapBlocks = 512

const idShape = /^([hrd])-h(\d{1,15})-(\d{1,15}|tip)-[0-9a-f]{8}-[0-9a-f]{12}$/

/** The id of a band. `tag`: 8 hex digits for the publisher; `digest`: 12 for the content. */
export function rootBandId(role: Role, [from, to]: HeightRange, tag: string, digest: string): string {
  return `${role}-h${from}-${to ?? 'tip'}-${tag}-${digest}`
}

/** Reads an id; undefined where it has another form: such a band is left as it is. */
export function parseRootBandId(id: string): RootBandName | undefined {
  const [, role, from, to] = idShape.exec(id) ?? []
  if (role === undefined) return undefined
  return { id, role: role as Role, range: [Number(from), to === 'tip' ? null : Number(to)] }
}

/** What the index holds: lowest height, the last that no fork can change, the tip. */
export interface IndexHeights {
  readonly start: number
  readonly stable: number
  readonly tip: number
}

/** Which bands are to be built now, in order. `due`: by the schedule, or by an order. */
export function planRootBands(
  present: readonly RootBandName[],
  { start, stable, tip }: IndexHeights,
  due: { readonly recent: boolean; readonly delta: boolean },
  historyBlocks: number,
): PlannedBand[] {
  const of = (role: Role): RootBandName[] => present.filter((band) => band.role === role)
  const planned: PlannedBand[] = []
  for (const range of gaps(of('h'), start, stable, historyBlocks)) {
    const inside = of('r').filter(
      ({ range: [from, to] }) => from >= range[0] && to !== null && to <= range[1],
    )
    planned.push({ role: 'h', range, supersedes: inside.map(({ id }) => id) })
  }
  const historyTop = top([...of('h'), ...planned], start - 1)
  const recent = of('r')
  if ((due.recent || recent.length === 0) && stable > historyTop && top(recent, -1) < stable) {
    planned.push({ role: 'r', range: [historyTop + 1, stable], supersedes: recent.map(({ id }) => id) })
  }
  const settled = top([...recent, ...of('h'), ...planned], start - 1)
  if (tip >= start && (due.delta || planned.length > 0)) {
    const from = settled < start ? start : Math.max(start, settled + 1 - overlapBlocks)
    planned.push({ role: 'd', range: [from, null], supersedes: of('d').map(({ id }) => id) })
  }
  return planned
}

function top(bands: readonly { readonly range: HeightRange }[], none: number): number {
  return bands.reduce((highest, { range: [, to] }) => Math.max(highest, to ?? none), none)
}

/** What of the whole stretches of the grid up to `stable` no history band covers. */
function gaps(
  bands: readonly RootBandName[],
  start: number,
  stable: number,
  grid: number,
): (readonly [number, number])[] {
  const found: [number, number][] = []
  const sorted = [...bands].sort((one, other) => one.range[0] - other.range[0])
  for (let cell = Math.floor(start / grid) * grid; cell + grid - 1 <= stable; cell += grid) {
    let from = Math.max(cell, start)
    for (const { range } of sorted) {
      const to = range[1] ?? range[0]
      if (to < from || range[0] > cell + grid - 1) continue
      if (range[0] > from) found.push([from, range[0] - 1])
      from = to + 1
    }
    if (from <= cell + grid - 1) found.push([from, cell + grid - 1])
  }
  return found
}
