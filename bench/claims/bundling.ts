import { createHash, randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { DurableLog } from '../../src/store/segments/durable-log.js'
import { BundleData } from '../../src/upload/bundling/bundle-data.js'
import type { AcceptedItem } from '../../src/upload/records/uploads.js'
import { scratch } from '../../test/scratch.js'
import { median, short } from '../kit/numbers.js'
import { say, table } from '../kit/say.js'

const help = `bundling: how fast accepted items become the data of a bundle, out of the log of uploads

  --mib N      of each bundle (128), at most 10,000 items
  --rounds N   (5)

packed: header, tree and root of its chunks. seeded: all chunks once more. Nothing is sent.
Processor time is that of the whole process, so other work beside it changes it little. Files are in the page cache.
`

const kib = 1024
const mib = kib * kib
const itemsMax = 10_000

/** A log with items of one size, as uploads leave it. */
async function logged(folder: string, bytes: number, count: number): Promise<AcceptedItem[]> {
  const log = await DurableLog.open(folder)
  const items: AcceptedItem[] = []
  const payload = randomBytes(bytes)
  for (let at = 0; at < count; at += 1) {
    payload.writeDoubleLE(at, 0)
    const digest = createHash('sha256').update(payload).digest()
    const place = log.append([payload], digest)
    if (isRefusal(place)) throw new Error(place.message)
    items.push({
      id: idOfBytes(digest),
      place,
      headerSize: 0,
      owner: '',
      receivedMs: at,
      deadlineHeight: 0,
      winc: '0',
    })
  }
  await log.close()
  return items
}

/** Mebibytes for a second of processor time, and of the clock. */
async function rateOf(sizeBytes: number, act: () => Promise<unknown>): Promise<[number, number]> {
  const cpu = process.cpuUsage()
  const begin = performance.now()
  await act()
  const seconds = (performance.now() - begin) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return [(sizeBytes / mib / (user + system)) * 1e6, sizeBytes / mib / seconds]
}

async function seeded(data: BundleData): Promise<number> {
  let count = 0
  for await (const { index } of data.chunks()) count = index + 1
  return count
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { mib: text, rounds: text, help: { type: 'boolean' } } })
  if (values.help === true) return say(help)
  const [wanted, rounds] = [Number(values.mib ?? 128) * mib, Number(values.rounds ?? 5)]
  const rows: string[][] = []
  for (const bytes of [kib, 10 * kib, 100 * kib, mib]) {
    const folder = scratch('bench-bundling')
    const items = await logged(folder, bytes, Math.min(itemsMax, Math.ceil(wanted / bytes)))
    const data = new BundleData(items, folder)
    const size = data.sizeBytes
    const [packs, seeds]: [number[], number[]] = [[], []]
    const clock: number[] = []
    for (let round = 0; round <= rounds; round += 1) {
      const [perCpu, perSecond] = await rateOf(size, () => new BundleData(items, folder).tree())
      const [seedPerCpu] = await rateOf(size, () => seeded(data))
      // The first compiles the code.
      if (round === 0) continue
      packs.push(perCpu)
      seeds.push(seedPerCpu)
      clock.push(perSecond)
    }
    const cells = [median(packs), median(clock), median(seeds)].map((rate) => `${short(rate)} MiB`)
    rows.push([`${items.length} of ${bytes / kib} KiB`, ...cells])
  }
  const names = ['items', 'packed per CPU second', 'per second', 'seeded per CPU second']
  for (const line of table(names, rows)) say(line)
  say('wanted: 300 MB packed in a second')
}

await main()
