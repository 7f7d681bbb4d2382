import type { Config } from '../../config/read.js'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Meters } from '../actor/meter.js'
import { meterTable } from '../actor/meter-table.js'
import type { CatalogRequest } from '../catalog/catalog-messages.js'
import type { TransactionInput } from '../catalog/index-protocol.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { indexBytes, openIndexTables } from '../catalog/index-tables.js'
import { idBytes } from '../format/id.js'
import { Agenda } from '../ingest/agenda.js'
import { BulkWay } from '../ingest/bulk-way.js'
import type { OpeningRules } from '../ingest/bundle-opening.js'
import { bundleAgenda, encodeBundleTask } from '../ingest/bundle-tasks.js'
import { Intake } from '../ingest/chain-intake.js'
import { matches } from '../ingest/filter.js'
import { IndexQueue, refusalWatch } from '../ingest/index-queue.js'
import { ingestDefaults } from '../ingest/ingest-parts.js'
import { ItemJudge } from '../ingest/item-judge.js'
import { OpeningMarks } from '../ingest/opening-marks.js'
import { isBundle } from '../source/roots/learned.js'
import { openEnvironment } from '../store/lmdb.js'
import { folders } from '../threads/folders.js'
import { openingRules } from '../threads/opening-rules.js'
import { openCatalogAtRest } from './catalog-at-rest.js'

/** What a command needs that fills the index while the gateway does not run. */
export interface Bulk {
  readonly index: ChainIndex
  readonly queue: IndexQueue
  readonly intake: Intake
  readonly bundles: Agenda
  readonly marks: OpeningMarks
  readonly judge: ItemJudge
  readonly rules: OpeningRules
  /** Resolves when the keeper has taken it. */
  write(request: CatalogRequest): Promise<void>
  /** Resolves when all that was written is in the index. */
  keep(): Promise<void>
  /** Does `act` when all that was written so far is in the index. */
  whenKept(act: () => void): void
  /**
   * Puts the transactions that are bundles and match the filter on the agenda; returns how many were refused because
   * it is full.
   */
  remember(transactions: readonly TransactionInput[]): number
  /** Bytes and rows of the index on disk. */
  usage(): { readonly rows: number; readonly bytes: number }
  close(): Promise<void>
}

/**
 * Claims `DATA_PATH` and opens the index with its keeper on a thread of its own and a pool of `proofThreads` threads
 * for signatures. Rejects where another process has it.
 */
export async function openBulk(
  config: Config,
  proofThreads: number,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): Promise<Bulk> {
  const catalog = await openCatalogAtRest(config, log)
  const { environment, index, keeper, shared } = catalog
  const tasks = openEnvironment(folders(config).agenda)
  const bundles = bundleAgenda(tasks, ingestDefaults.tasksMax)
  const missing = new Agenda(tasks, 'missing', ingestDefaults.tasksMax)
  const rules = openingRules(config)
  const judge = new ItemJudge(proofThreads, log)
  const watch = refusalWatch(log, new Meters(meterTable, shared.meters, 0))
  const queue = new IndexQueue(keeper, index, signal, watch, false, new BulkWay())
  return {
    index,
    queue,
    bundles,
    marks: new OpeningMarks(tasks, bundles),
    judge,
    rules,
    intake: new Intake(bundles, missing, rules.unbundle),
    async write(request) {
      await queue.write(() => request)
    },
    keep: () => queue.keep(),
    whenKept: (act) => queue.whenKept(act),
    remember(transactions) {
      index.refresh()
      const wanted = transactions.filter(
        (one) => one.size > 0 && isBundle(one.tags) && matches(rules.unbundle, subjectOf(index, one)),
      )
      return bundles.put(
        wanted.map(({ id, ownerAddress, size }) => ({
          key: idBytes(id),
          value: encodeBundleTask({ owner: ownerAddress, sizeBytes: size }),
        })),
        clock.now(),
      )
    },
    usage() {
      index.refresh()
      return { rows: index.counts().rows, bytes: indexBytes(openIndexTables(environment)) }
    },
    async close() {
      await judge.close()
      await tasks.close()
      await catalog.close()
    },
  }
}

/** The fields for filters of a transaction that came without its owner's key, which the index has by now. */
function subjectOf(index: ChainIndex, one: TransactionInput): Parameters<typeof matches>[1] {
  const { id, target, anchor, tags, size: sizeBytes, format, quantity, reward, dataRoot } = one
  const signature = one.signature ?? new Uint8Array(0)
  const owner = one.owner.length > 0 ? one.owner : (index.ownerKey(one.ownerAddress) ?? one.owner)
  const transfer = { format, quantity, reward, dataRoot }
  return { id, owner, target, anchor, signature, tags, sizeBytes, transfer }
}
