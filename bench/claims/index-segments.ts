import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pause, systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import type { CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Effort } from '../../src/catalog/effort.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { type IndexTables, indexBytes, openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { idBytes } from '../../src/format/id.js'
import { RowBatch } from '../../src/index/row-batch.js'
import { Segment } from '../../src/index/segment.js'
import { SegmentKeeper } from '../../src/index/segment-keeper.js'
import { Segments } from '../../src/index/segment-list.js'
import { mergeSegments } from '../../src/index/segment-merge.js'
import { pageOf } from '../../src/index/segment-pages.js'
import { buildInBulk, forkDepth } from '../index/bulk-build.js'
import { type ChainBlock, messagesOf, named } from '../index/chain.js'
import { chainOf } from '../index/chain-process.js'
import { noId, pageKinds } from '../index/page-kinds.js'
import { segmentRows } from '../index/segment-rows.js'
import { memoryMiB, Spent } from '../index/spent.js'
import { quantile } from '../kit/numbers.js'
import { say, table } from '../kit/say.js'

const help = `index-segments: rows in segments beside rows in the catalog's index, in one run

  --items N        items of the made-up chain (1000000)
  --merged N       segments that become one (8); each row is merged twice
  --asks N         questions of a kind (2000)
  --no-catalog     the segments alone
  --bulk           only rows of the catalog, in bulk, past its tables; its segments are merged by the same number
  --repeated       with --bulk: blocks are repeated with other ids and values, which takes less time to make
  --stages         with --bulk: the time of each stage, by samples
  --flush N        rows of the catalog that become a segment (250000); 0: all stay in its tables
  --folder PATH    where both go and stay (a temporary folder, removed at the end)

Processor time of the whole process, user and system: helper threads count too.
`

/** Looks at the index without a change after which nothing more is to come. */
const quietLooks = 160
const lookMs = 250

interface Settings {
  readonly items: number
  readonly merged: number
  readonly folder: string
  /** Rows of the catalog that leave its tables at once; 0: none do. */
  readonly flushRows: number
}

/** Builds one segment of the whole chain: written in parts, each row merged twice. */
function buildSegments({ items, merged, folder }: Settings): {
  segment: Segment
  ids: Uint8Array[]
  bundles: Uint8Array[]
} {
  const segments = new Segments(folder, () => list)
  let list: Uint8Array | undefined
  const ledger = {
    read: () => list,
    write: (next: Uint8Array) => {
      list = next
    },
  }
  const keeper = new SegmentKeeper(segments, ledger, { segmentsAlike: merged, levelMax: 2 })
  const perPart = Math.ceil((items * 1.001) / merged ** 2 / 2002) * 2002
  const [adding, writing, merging] = [new Spent(), new Spent(), new Spent()]
  const [ids, bundles]: [Uint8Array[], Uint8Array[]] = [[], []]
  let batch = new RowBatch()
  const flush = (): void => {
    if (batch.count === 0) return
    writing.of(() => keeper.add(batch))
    batch = new RowBatch()
    merging.of(() => {
      while (keeper.tend(1000) === 'more');
    })
    for (const path of keeper.takeRetired()) rmSync(path)
  }
  for (const block of chainOf(items).blocks()) {
    note(block, ids, bundles)
    const rows = [...segmentRows(block)]
    adding.of(() => {
      for (const { row, key } of rows) {
        batch.add(row)
        batch.addOwnerKey(row.owner, key)
      }
    })
    if (batch.count >= perPart) flush()
  }
  flush()
  const path = join(folder, 'whole')
  const sources = segments.all().map((segment) => ({ segment }))
  // Parts are whole blocks, so they may be fewer than are merged twice.
  if (sources.length > 1) {
    merging.of(() => {
      for (const steps = mergeSegments(sources, path); steps.next().done !== true; );
    })
  }
  const segment = sources.length > 1 ? Segment.open(path) : sources[0]?.segment
  if (segment === undefined) throw new Error('no segment was made')
  sayBuilt(segment, [
    ['rows into memory', adding.us],
    [`written, ${perPart} rows at once`, writing.us],
    ['merged twice', merging.us],
  ])
  return { segment, ids, bundles }
}

function note({ bundles: made }: ChainBlock, ids: Uint8Array[], bundles: Uint8Array[]): void {
  const [some] = made
  const id = some?.items[0]?.id
  if (some === undefined || id === undefined) return
  ids.push(idBytes(id))
  bundles.push(idBytes(some.rootId))
}

function sayBuilt(segment: Segment, steps: readonly (readonly [string, number])[]): void {
  const { count } = segment
  say(`segments: ${count} rows, ${segment.file.sizeBytes} bytes`)
  const sizes = Object.entries(segment.sizes()).map(([part, size]) => [part, (size / count).toFixed(2)])
  const all = (segment.file.sizeBytes / count).toFixed(1)
  for (const line of table(['part', 'bytes a row'], [...sizes, ['all', all]])) say(line)
  const total = steps.reduce((sum, [, us]) => sum + us, 0)
  const lines = [...steps, ['all', total] as const].map(([step, us]) => [step, (us / count).toFixed(2)])
  for (const line of table(['step', 'us a row'], lines)) say(line)
  say(
    `${Math.round((count * 1e6) / total)} rows a second of processor time, ${memoryMiB()} MiB in memory at most\n`,
  )
}

/** Resolves when nothing has changed for a while: flushes and merges are done. */
async function settled(tables: IndexTables): Promise<void> {
  let [before, same] = ['', 0]
  while (same < quietLooks) {
    await pause(lookMs)
    tables.environment.refresh()
    const now = `${tables.sets.sets.map(({ rows }) => rows.count())} ${tables.segments.all().map(({ number }) => number)}`
    same = now === before ? same + 1 : 0
    before = now
  }
}

/** The same chain in the catalog's index. */
async function buildCatalog({ items, folder, flushRows }: Settings): Promise<ChainIndex> {
  const path = join(folder, 'catalog')
  const generations = new Generations()
  const flushLimits = { rows: flushRows, forkDepth }
  const options = { path, touchEveryMs: 1000, flush: flushLimits }
  const keeper = new CatalogKeeper(options, generations, systemClock)
  const { environment } = openCatalogTables(path)
  const tables = openIndexTables(environment)
  const spent = new Spent()
  let waiting: ChainBlock[] = []
  const flush = async (): Promise<void> => {
    const messages = waiting.flatMap((block): CatalogRequest[] => messagesOf(block))
    waiting = []
    await spent.during(() => Promise.all(messages.map((message) => keeper.handle(message))))
  }
  for (const block of chainOf(items).blocks()) if (waiting.push(block) === 20) await flush()
  await flush()
  await spent.during(() => settled(tables))
  environment.refresh()
  const index = new ChainIndex(environment, generations)
  const { rows } = index.counts()
  const [bytes, rate] = [indexBytes(tables) / rows, (rows * 1e6) / spent.us]
  const left = tables.sets.counts().rows
  const files = tables.segments.all().map(({ segment }) => segment.count)
  say(`catalog: ${left} rows in tables, ${files.length} segments: ${files.join(', ')}`)
  say(
    `catalog: ${rows} rows, ${bytes.toFixed(1)} bytes a row, ${Math.round(rate)} rows a second of processor time\n`,
  )
  return index
}

/** Microseconds of processor time on average, and the 99th percentile of elapsed time. */
function measured(asks: number, act: (at: number) => unknown): string[] {
  for (let at = 0; at < asks; at += 1) act(at)
  const times: number[] = []
  const spent = new Spent()
  spent.of(() => {
    for (let at = 0; at < asks; at += 1) {
      const before = systemClock.monotonic()
      act(at)
      times.push(systemClock.monotonic() - before)
    }
  })
  times.sort((one, other) => one - other)
  return [(spent.us / asks).toFixed(1), (quantile(times, 0.99) * 1000).toFixed(0)]
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '1000000' },
      merged: { type: 'string', default: '8' },
      asks: { type: 'string', default: '2000' },
      flush: { type: 'string', default: '250000' },
      'no-catalog': { type: 'boolean', default: false },
      bulk: { type: 'boolean', default: false },
      stages: { type: 'boolean', default: false },
      repeated: { type: 'boolean', default: false },
      folder: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return say(help)
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-index-segments-'))
  const settings = {
    items: Number(values.items),
    merged: Number(values.merged),
    folder: join(folder, 'segments'),
    flushRows: Number(values.flush),
  }
  const asks = Number(values.asks)
  const { stages: byStage, repeated: isRepeated } = values
  const bulk = { ...settings, folder, rows: settings.flushRows, byStage, isRepeated }
  const built = values.bulk ? await buildInBulk(bulk) : buildSegments(settings)
  const segment = 'segment' in built ? built.segment : undefined
  const index =
    'index' in built ? built.index : await catalogOf(values['no-catalog'], { ...settings, folder })
  const names = [...(segment === undefined ? [] : ['segments']), ...(index === undefined ? [] : ['catalog'])]
  const head = ['us of processor time, us at the 99th percentile', ...names.flatMap((name) => [name, 'p99'])]
  const rows = measuredKinds({ ...built, segment, index }, asks, Math.floor(settings.items / 50))
  for (const line of table(head, rows)) say(line)
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
}

async function catalogOf(isLeftOut: boolean, settings: Settings): Promise<ChainIndex | undefined> {
  return isLeftOut ? undefined : buildCatalog(settings)
}

interface Measured {
  readonly segment: Segment | undefined
  readonly index: ChainIndex | undefined
  readonly ids: readonly Uint8Array[]
  readonly bundles: readonly Uint8Array[]
}

/** Questions of each kind, to what there is. */
function measuredKinds({ segment, index, ids, bundles }: Measured, asks: number, owners: number): string[][] {
  const idOf = (at: number): Uint8Array => ids[(at * 7919) % ids.length] ?? noId
  const absent = (at: number): Uint8Array => named(9, at)
  const both = (
    one: (segment: Segment, at: number) => unknown,
    other: (index: ChainIndex, at: number) => unknown,
  ): string[] => [
    ...(segment === undefined ? [] : measured(asks, (at) => one(segment, at))),
    ...(index === undefined ? [] : measured(asks, (at) => other(index, at))),
  ]
  const effort = (): Effort => new Effort(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, systemClock)
  return [
    [
      'id',
      ...both(
        (segment, at) => segment.row(segment.find(idOf(at))),
        (index, at) => index.row(idOf(at)),
      ),
    ],
    [
      'absent id',
      ...both(
        (segment, at) => segment.find(absent(at)),
        (index, at) => index.row(absent(at)),
      ),
    ],
    ...pageKinds(bundles, owners).map(({ name, wanted }) => {
      const page = { backwards: true, limit: 100 }
      return [
        `100 newest: ${name}`,
        ...both(
          (segment, at) => pageOf([segment], wanted(at), page),
          (index, at) => index.rows(wanted(at), page, effort()),
        ),
      ]
    }),
  ]
}

await main()
