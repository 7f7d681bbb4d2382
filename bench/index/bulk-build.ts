import { join } from 'node:path'
import { pause, systemClock } from '../../src/actor/clock.js'
import type { BulkPart } from '../../src/catalog/bulk-protocol.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { type IndexTables, indexBytes, openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { isRefusal } from '../../src/format/refusal.js'
import { say, table } from '../kit/say.js'
import { madeElsewhere } from './chain-process.js'
import { OwnMemory } from './own-memory.js'
import { Spent } from './spent.js'
import { StageSampler } from './stages.js'

/** As the program has it. */
export const forkDepth = 18
const lookMs = 50
/** Rows between two lines about how far it is. */
const sayEvery = 1_000_000

export interface BulkSettings {
  readonly items: number
  /** Segments that become one. */
  readonly merged: number
  /** Rows of a batch. */
  readonly rows: number
  readonly folder: string
  /** Say which stage took how much: samples the thread, which takes some time itself. */
  readonly byStage: boolean
  /** Blocks are repeated, with other ids and values: for long chains. */
  readonly isRepeated?: boolean
}

export interface BulkBuilt {
  readonly index: ChainIndex
  /** Some ids of items and of bundles. */
  readonly ids: Uint8Array[]
  readonly bundles: Uint8Array[]
}

/** Resolves when no segments are left that are merged. */
async function merged(tables: IndexTables, segmentsAlike: number): Promise<void> {
  for (;;) {
    tables.environment.refresh()
    const { levels } = tables.segments.totals()
    if ([0, 1].every((level) => (levels.get(level) ?? 0) < segmentsAlike)) return
    await pause(lookMs)
  }
}

/** The made-up chain through the keeper as an import in bulk brings it. */
export async function buildInBulk(settings: BulkSettings): Promise<BulkBuilt> {
  const path = join(settings.folder, 'catalog')
  const generations = new Generations()
  const merges = { segmentsAlike: settings.merged, levelMax: 2 }
  const flush = { rows: settings.rows, forkDepth, merges }
  const keeper = new CatalogKeeper({ path, touchEveryMs: 1000, flush }, generations, systemClock)
  const { environment } = openCatalogTables(path)
  const tables = openIndexTables(environment)
  const begun = await keeper.handle({ kind: 'bulk-begin' })
  if (isRefusal(begun) || begun.bulk === undefined) throw new Error('no session was begun')
  const { session } = begun.bulk
  const spent = new Spent()
  const memory = new OwnMemory()
  let most = 0
  const sampler = settings.byStage ? new StageSampler() : undefined
  await sampler?.open()
  const measured = (act: () => Promise<unknown>): Promise<void> =>
    sampler === undefined ? spent.during(act) : sampler.during(() => spent.during(act))
  const [ids, bundles]: [Uint8Array[], Uint8Array[]] = [[], []]
  let [blocks, shown] = [0, 0]
  for await (const made of madeElsewhere(settings.items, { isRepeated: settings.isRepeated === true })) {
    ids.push(...made.ids)
    bundles.push(...made.bundles)
    blocks += made.blocks.length
    const messages = made.blocks.map(
      (parts) => ({ kind: 'bulk', session, parts: parts as BulkPart[] }) as const,
    )
    await measured(() => Promise.all(messages.map((message) => keeper.handle(message))))
    if (blocks * 2000 < shown + sayEvery) continue
    shown = blocks * 2000
    const own = memory.takeMost()
    most = Math.max(most, own)
    say(
      `${shown} rows, ${(spent.us / shown).toFixed(1)} us a row so far, ${own} MiB of own memory since the last`,
    )
  }
  await measured(async () => {
    await keeper.handle({ kind: 'bulk-end', session })
    await merged(tables, settings.merged)
  })
  most = Math.max(most, memory.takeMost())
  await memory.close()
  await keeper.close()
  environment.refresh()
  const index = new ChainIndex(environment, generations)
  sayBulk(index, tables, spent, sampler)
  say(`${most} MiB of own memory at most, with the bench's\n`)
  return { index, ids, bundles }
}

function sayBulk(
  index: ChainIndex,
  tables: IndexTables,
  { us }: Spent,
  sampler: StageSampler | undefined,
): void {
  const { rows } = index.counts()
  const files = tables.segments.all().map(({ segment }) => segment.count)
  say(`in bulk: ${rows} rows, ${files.length} segments: ${files.join(', ')}`)
  say(`${(indexBytes(tables) / rows).toFixed(1)} bytes a row`)
  if (sampler !== undefined) {
    const stages = sampler.shares().map(([stage, share]) => [stage, ((share * us) / rows).toFixed(2)])
    for (const line of table(['stage', 'us a row'], stages)) say(line)
  }
  say(`${(us / rows).toFixed(2)} us a row, ${Math.round((rows * 1e6) / us)} rows a second of processor time`)
}
