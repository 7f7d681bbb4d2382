import t from 'tap'
import {
  type IndexHeights,
  type PlannedBand,
  parseRootBandId,
  planRootBands,
  rootBandId,
} from '../../src/bands/root-plan.js'

const due = { recent: true, delta: true }
const never = { recent: false, delta: false }
const digits = '0123456789ab'
const name = (role: 'h' | 'r' | 'd', from: number, to: number | null): string =>
  rootBandId(role, [from, to], '11aa22bb', digits)
const present = (...ids: string[]) => ids.flatMap((id) => parseRootBandId(id) ?? [])
const short = (planned: readonly PlannedBand[]): string[] =>
  planned.map(({ role, range: [from, to], supersedes }) =>
    `${role} ${from}-${to ?? 'tip'} ${supersedes.join(' ')}`.trim(),
  )
const at = (start: number, stable: number, tip: number): IndexHeights => ({ start, stable, tip })

t.test('ids say role, heights, publisher and content', async (t) => {
  t.equal(name('d', 1_200_000, null), 'd-h1200000-tip-11aa22bb-0123456789ab')
  t.strictSame(parseRootBandId(name('h', 0, 99))?.range, [0, 99])
  for (const other of ['band-tip', 'x-h0-1-11aa22bb-0123456789ab', 'd-h0-tip-11aa22bb-0123', '']) {
    t.equal(parseRootBandId(other), undefined)
  }
})

t.test('a new index: whole stretches of the grid, the rest that is settled, and the tip', async (t) => {
  t.strictSame(short(planRootBands([], at(0, 2500, 2520), never, 1000)), [
    'h 0-999',
    'h 1000-1999',
    'r 2000-2500',
    'd 1989-tip',
  ])
  t.strictSame(short(planRootBands([], at(1500, 2500, 2520), never, 1000)), [
    'h 1500-1999',
    'r 2000-2500',
    'd 1989-tip',
  ])
  t.strictSame(short(planRootBands([], at(0, -10, 5), due, 1000)), ['d 0-tip'], 'nothing is settled yet')
})

t.test('what is there is not built again; a successor names whom it replaces', async (t) => {
  const have = present(name('h', 0, 999), name('r', 1000, 1500), name('d', 989, null))
  t.strictSame(short(planRootBands(have, at(0, 1800, 1820), never, 1000)), [])
  t.strictSame(short(planRootBands(have, at(0, 1800, 1820), { recent: false, delta: true }, 1000)), [
    `d 989-tip ${name('d', 989, null)}`,
  ])
  t.strictSame(short(planRootBands(have, at(0, 1800, 1820), due, 1000)), [
    `r 1000-1800 ${name('r', 1000, 1500)}`,
    `d 1289-tip ${name('d', 989, null)}`,
  ])
  t.strictSame(
    short(planRootBands(have, at(0, 2100, 2120), never, 1000)),
    [`h 1000-1999 ${name('r', 1000, 1500)}`, `d 1488-tip ${name('d', 989, null)}`],
    'history takes the place of what it covers',
  )
})

t.test('history that came later fills the gap before what is there', async (t) => {
  const have = present(name('h', 1500, 1999), name('r', 2000, 2500))
  t.strictSame(short(planRootBands(have, at(0, 2500, 2520), never, 1000)), [
    'h 0-999',
    'h 1000-1499',
    'd 1989-tip',
  ])
})
