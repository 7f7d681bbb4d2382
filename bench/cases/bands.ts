import { join } from 'node:path'
import { type BandFile, benchBand, offered, shelveBand } from '../corpus/band.js'
import { clientKinds } from '../load/clients.js'
import { type PlanFile, writePlan } from '../load/load.js'
import type { CaseWords } from '../report/results.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { startGateway } from '../rivals/gateway.js'
import { fileServer } from '../rivals/nginx.js'
import {
  closedFigures,
  type Group,
  idle,
  interleaved,
  loadOn,
  type Order,
  openFigures,
  runCase,
} from './run.js'

interface BandCase extends CaseWords {
  readonly rangeBytes: number
  readonly rate: number
}

const of = (size: string): string =>
  `ranges of ${size} anywhere in the largest file of a band that is given away`
const words = { group: 'bands', cost: 'cpuUs' } as const

const cases: readonly BandCase[] = [
  { ...words, name: 'bands: 1 KiB', about: of('1 KiB'), bar: 1.2, rangeBytes: 2 ** 10, rate: 2000 },
  { ...words, name: 'bands: 64 KiB', about: of('64 KiB'), bar: 1, rangeBytes: 2 ** 16, rate: 1000 },
  { ...words, name: 'bands: 1 MiB', about: of('1 MiB'), bar: 0.95, rangeBytes: 2 ** 20, rate: 200 },
]

function planFor({ role }: Candidate, band: BandFile, rangeBytes: number): PlanFile {
  const path = role === 'ours' ? band.gatewayPath : `/${band.name}`
  const target = { path, sizeBytes: band.sizeBytes, truthStart: 0, rangeBytes }
  return writePlan({ truthPath: join(band.folder, band.name), clients: clientKinds, targets: [target] })
}

async function measure(bandCase: BandCase, band: BandFile, candidates: readonly Candidate[], order: Order) {
  const { seconds, connections, scale } = order
  const rate = bandCase.rate * scale.rate
  for (const candidate of candidates) {
    const plan = planFor(candidate, band, bandCase.rangeBytes)
    await loadOn(candidate, plan, { seconds: Math.min(seconds, 1), connections }).finally(() => plan.drop())
  }
  return interleaved(candidates, order, bandCase.cost, async (candidate) => {
    const plan = planFor(candidate, band, bandCase.rangeBytes)
    try {
      const closed = await loadOn(candidate, plan, { seconds, connections })
      const open = await loadOn(candidate, plan, { seconds, connections: 4 * connections, rate })
      return { ...closedFigures(closed), ...openFigures(open, rate) }
    } finally {
      plan.drop()
    }
  })
}

/** Runs a case with servers of its own: a gateway whose index is empty soon withdraws the band that was put into its folder. */
async function runOne(bandCase: BandCase, band: BandFile, order: Order): Promise<void> {
  const { threads } = order
  const { rangeBytes: _range, rate: _rate, ...named } = bandCase
  const settings = { INDEX_PUBLISH: 'true' }
  const gateway = await startGateway({ name: 'sluice', threads, settings, prepare: shelveBand })
  const candidates: Candidate[] = [gateway]
  try {
    await offered(gateway.port, band)
    for (const sendfile of [true, false])
      candidates.push(await fileServer({ files: band.folder }, threads, sendfile))
    for (const candidate of candidates) await idle(candidate)
    await runCase(order, named, () => measure(bandCase, band, candidates, order))
  } finally {
    await stopAll(candidates)
  }
}

export const bandGroup: Group = {
  name: 'bands',
  cases,
  async run(order, wanted) {
    const band = await benchBand()
    order.note('bands: servers start')
    for (const bandCase of cases.filter((one) => wanted.includes(one))) await runOne(bandCase, band, order)
  },
}
