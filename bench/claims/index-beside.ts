import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pause, systemClock } from '../../src/actor/clock.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { appTag } from '../index/chain.js'
import { Comparison } from '../index/comparison.js'
import { type FollowedBlocks, Follower } from '../index/followed.js'
import { noId } from '../index/page-kinds.js'
import { quantile } from '../kit/numbers.js'
import { say, table } from '../kit/say.js'

const help = `index-beside: what questions wait for while the index takes rows through its tables as fast as it can

  --slices N       pairs of slices (80)
  --seconds N      of each slice (1.5)
  --every N        milliseconds between two questions of each kind (5)
  --rows N         that are there before the first slice (100000)
  --together N     blocks of 1000 items in one transaction (20)
  --folder PATH    where the index goes and stays (a temporary folder, removed at the end)

Slices alternate: the writer, a process with the rank of the catalog's thread, is stopped and goes on (SIGSTOP, SIGCONT), so that
what else the machine does meets both. Shown are the median of all slices, and the median of the ratios of all pairs. Its rate is
rows a second of the writer's own processor time, with the making of segments and merges.
`

interface Wish {
  readonly folder: string
  readonly slices: number
  readonly seconds: number
  readonly everyMs: number
  readonly rows: number
  readonly blocksAtOnce: number
}

type Ask = readonly [kind: string, act: (at: number) => unknown]

/** Microseconds of each question of a slice, by kind. */
async function slice(asks: readonly Ask[], wish: Wish): Promise<number[][]> {
  const times = asks.map((): number[] => [])
  const count = Math.floor((wish.seconds * 1000) / wish.everyMs)
  const beganMs = systemClock.monotonic()
  for (let at = 0; at < count; at += 1) {
    const dueMs = beganMs + at * wish.everyMs
    await pause(Math.max(0, dueMs - systemClock.monotonic()))
    for (const [kind, [, act]] of asks.entries()) {
      const from = systemClock.monotonic()
      act(at)
      times[kind]?.push((systemClock.monotonic() - from) * 1000)
    }
  }
  return times
}

function linesOf(asks: readonly Ask[], alone: readonly number[][][], beside: readonly number[][][]) {
  return asks.flatMap(([kind], at) =>
    [0.5, 0.99].map((part) => {
      const of = (slices: readonly number[][][]): number[] =>
        slices.map((times) => quantile(times[at] ?? [], part))
      const [one, other] = [of(alone), of(beside)]
      const ratios = one.map((us, pair) => (other[pair] ?? 0) / us)
      const middle = (list: number[]): number => quantile(list, 0.5)
      return [
        `${kind}, p${part * 100}`,
        middle(one).toFixed(0),
        middle(other).toFixed(0),
        middle(ratios).toFixed(2),
      ]
    }),
  )
}

async function measure(wish: Wish): Promise<void> {
  const path = join(wish.folder, 'catalog')
  const generations = new Generations()
  const { environment } = openCatalogTables(path)
  const index = new ChainIndex(environment, generations)
  const comparison = new Comparison(index, undefined)
  const ids: Uint8Array[] = []
  let last: FollowedBlocks | undefined
  const chain = { path, items: 1e9, blockMs: 0, forkEvery: 0, flushRows: 250_000 }
  const follower = new Follower({ ...chain, blocksAtOnce: wish.blocksAtOnce }, (blocks) => {
    last = blocks
    if (ids.length < 20_000) ids.push(...blocks.ids)
  })
  const refreshed = (): void => {
    generations.commit([])
    index.refresh()
  }
  while ((last?.rows ?? 0) < wish.rows) await pause(100)
  refreshed()
  const asks: Ask[] = [
    ['id', (at) => index.row(ids[(at * 7919) % ids.length] ?? noId)],
    [
      'GraphQL',
      (at) => comparison.ask({ tags: [{ name: 'App-Name', values: [appTag(at % 200).value] }], first: 10 }),
    ],
  ]
  await slice(asks, wish)
  const [alone, beside]: [number[][][], number[][][]] = [[], []]
  const first = last
  for (let pair = 0; pair < wish.slices; pair += 1) {
    follower.halt()
    refreshed()
    alone.push(await slice(asks, wish))
    follower.goOn()
    refreshed()
    beside.push(await slice(asks, wish))
  }
  await pause(1500)
  const [rows, ranMs] = [(last?.rows ?? 0) - (first?.rows ?? 0), (last?.ranMs ?? 0) - (first?.ranMs ?? 0)]
  await follower.stop()
  await environment.close()
  const head = ['us', 'alone', 'beside', 'ratio']
  for (const line of table(head, linesOf(asks, alone, beside))) say(line)
  say(`${rows} rows meanwhile, ${Math.round((rows * 1000) / ranMs)} a second of the writer's processor time`)
}

const { values } = parseArgs({
  options: {
    slices: { type: 'string', default: '80' },
    seconds: { type: 'string', default: '1.5' },
    every: { type: 'string', default: '5' },
    rows: { type: 'string', default: '100000' },
    together: { type: 'string', default: '20' },
    folder: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) say(help)
else {
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-index-beside-'))
  await measure({
    folder,
    slices: Number(values.slices),
    seconds: Number(values.seconds),
    everyMs: Number(values.every),
    rows: Number(values.rows),
    blocksAtOnce: Number(values.together),
  })
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
}
