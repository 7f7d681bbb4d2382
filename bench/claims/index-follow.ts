import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pause, systemClock } from '../../src/actor/clock.js'
import { processorTime } from '../../src/actor/processor-time.js'
import { Effort } from '../../src/catalog/effort.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { type IndexTables, indexBytes, openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { appTag, halfTag, named } from '../index/chain.js'
import { Comparison } from '../index/comparison.js'
import { type FollowedBlocks, Follower, type MemoryUse, memoryUse } from '../index/followed.js'
import { noId, pageKinds } from '../index/page-kinds.js'
import { ownerCount } from '../index/repeated-chain.js'
import { quantile } from '../kit/numbers.js'
import { say } from '../kit/say.js'

const help = `index-follow: the index follows a made-up chain while it answers queries; one line a minute

  --minutes N      how long (120)
  --block-ms N     between blocks of 1000 items (100)
  --fork-every N   blocks between two forks, of depths 1 to 18 by turns (600); 0: none
  --ask-ms N       between two questions of each kind (100)
  --flush N        rows that become a segment (250000)
  --together N     blocks that come at once, in one transaction (1)
  --folder PATH    where the index goes and stays (a temporary folder, removed at the end)

The writer is a process of its own, so that its memory can be told from that of who asks; blocks are made by a third one. Where
the machine does not carry the rate, the chain waits, and the rate is shown. Of questions: processor time of the thread that asks,
us, on average and at the 99th percentile; of blocks: elapsed milliseconds until they are committed. Memory is MiB: own
(RssAnon), heap, outside of the heap with mapped files; of who asks, and of the writer.
`

/** Ids and bundles that are remembered for questions. */
const rememberedMax = 20_000

/** Some of all that came, each as likely as any other: no more than so many. */
class Remembered {
  readonly some: Uint8Array[] = []
  #seen = 0

  add(bytes: Uint8Array): void {
    this.#seen += 1
    if (this.some.length < rememberedMax) this.some.push(bytes)
    else {
      const at = Math.floor(Math.random() * this.#seen)
      if (at < rememberedMax) this.some[at] = bytes
    }
  }
}

/** Asks each kind of question, and keeps how long it took. */
class Asker {
  readonly #times = new Map<string, number[]>()
  readonly ids = new Remembered()
  readonly bundles = new Remembered()
  readonly #kinds: readonly (readonly [string, (at: number) => unknown])[]
  #count = 0

  constructor(index: ChainIndex, owners: number) {
    const page = { backwards: true, limit: 100 }
    const effort = (): Effort => new Effort(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, systemClock)
    const comparison = new Comparison(index, undefined)
    const pick = (some: readonly Uint8Array[], at: number): Uint8Array =>
      some[(at * 7919) % some.length] ?? noId
    const tags = (at: number) => [
      { name: 'App-Name', values: [appTag(at % 200).value] },
      { name: halfTag.name, values: [halfTag.value] },
    ]
    this.#kinds = [
      ['id', (at) => index.row(pick(this.ids.some, at))],
      ['absent', (at) => index.row(named(9, at))],
      ...pageKinds(this.bundles.some, owners).map(
        ({ name, wanted }) => [name, (at: number) => index.rows(wanted(at), page, effort())] as const,
      ),
      ['GraphQL', (at) => comparison.ask({ tags: tags(at), first: 10 })],
    ]
  }

  ask(): void {
    this.#count += 1
    for (const [kind, act] of this.#kinds) {
      const before = processorTime.monotonic()
      act(this.#count)
      const times = this.#times.get(kind)
      const took = (processorTime.monotonic() - before) * 1000
      if (times === undefined) this.#times.set(kind, [took])
      else times.push(took)
    }
  }

  /** Average and 99th percentile of each kind since the last call. */
  takeLine(): string {
    const parts = [...this.#times].map(([kind, times]) => {
      const average = times.reduce((sum, time) => sum + time, 0) / times.length
      return `${kind} ${average.toFixed(0)}/${quantile(times, 0.99).toFixed(0)}`
    })
    this.#times.clear()
    return parts.join(', ')
  }
}

const memoryText = ({ ownMiB, heapMiB, outsideMiB }: MemoryUse): string =>
  `${ownMiB} (${heapMiB}, ${outsideMiB})`

/** What a minute was like, in one line. */
function lineOf(
  { counts, tables }: { readonly counts: { readonly rows: number }; readonly tables: IndexTables },
  news: readonly FollowedBlocks[],
  rowsBefore: number,
): string {
  const { rows } = counts
  const last = news.at(-1)
  const most = (pick: (blocks: FollowedBlocks) => number): string => Math.max(0, ...news.map(pick)).toFixed(0)
  const usual = quantile(
    news.map(({ p50Ms }) => p50Ms),
    0.5,
  )
  return (
    `${rows} rows (${Math.round((rows - rowsBefore) / 60)}/s), ${tables.sets.counts().rows} in tables, ` +
    `${tables.segments.all().length} segments, ${(indexBytes(tables) / rows).toFixed(1)} bytes a row; ` +
    `memory ${memoryText(memoryUse())}, writer ${last === undefined ? 'none' : memoryText(last.memory)}; ` +
    `writer ${last === undefined ? 0 : Math.round((last.rows * 1000) / last.ranMs)} rows a processor second; ` +
    `blocks: ${last?.blocks ?? 'none'}, forks ${last?.forks ?? 'none'}, p50 ${usual.toFixed(0)} ms, ` +
    `worst p99 ${most(({ p99Ms }) => p99Ms)}, most ${most(({ mostMs }) => mostMs)}, ` +
    `behind ${most(({ behindMs }) => behindMs)}`
  )
}

interface Wish {
  readonly folder: string
  readonly minutes: number
  readonly blockMs: number
  readonly askMs: number
  readonly forkEvery: number
  readonly flushRows: number
  readonly blocksAtOnce: number
}

async function follow({ folder, minutes, blockMs, askMs, ...chosen }: Wish): Promise<void> {
  const path = join(folder, 'catalog')
  const items = Math.ceil((minutes * 60_000) / Math.max(1, blockMs)) * 1000
  const generations = new Generations()
  const { environment } = openCatalogTables(path)
  const tables = openIndexTables(environment)
  const index = new ChainIndex(environment, generations)
  const asker = new Asker(index, ownerCount)
  let news: FollowedBlocks[] = []
  const chain = { path, items, blockMs, ...chosen }
  const follower = new Follower(chain, (blocks) => {
    news.push(blocks)
    for (const id of blocks.ids) asker.ids.add(id)
    for (const bundle of blocks.bundles) asker.bundles.add(bundle)
  })
  const startedMs = systemClock.monotonic()
  let rowsBefore = 0
  for (let minute = 1; minute <= minutes; minute += 1) {
    const endMs = startedMs + minute * 60_000
    while (systemClock.monotonic() < endMs) {
      await pause(askMs)
      // The writer has a table of its own.
      generations.commit([])
      index.refresh()
      if (asker.ids.some.length > 0) asker.ask()
    }
    environment.refresh()
    const counts = index.counts()
    say(`${minute} min: ${lineOf({ counts, tables }, news, rowsBefore)}; ${asker.takeLine()}`)
    rowsBefore = counts.rows
    news = []
  }
  await follower.stop()
  await environment.close()
}

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '120' },
    'block-ms': { type: 'string', default: '100' },
    'fork-every': { type: 'string', default: '600' },
    'ask-ms': { type: 'string', default: '100' },
    flush: { type: 'string', default: '250000' },
    together: { type: 'string', default: '1' },
    folder: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) say(help)
else {
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-index-follow-'))
  await follow({
    folder,
    minutes: Number(values.minutes),
    blockMs: Number(values['block-ms']),
    askMs: Number(values['ask-ms']),
    forkEvery: Number(values['fork-every']),
    flushRows: Number(values.flush),
    blocksAtOnce: Number(values.together),
  })
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
}
