import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../actor/clock.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import { inputTable, schemaStatements } from './clickhouse-schema.js'
import { recordHeights, type StableHeights, wholeHeights, withHeights } from './heights.js'
import { type Batch, PushBatches, type PushLimits } from './push-batches.js'
import { sameChain } from './same-chain.js'
import { lacksWholeRows, markIfEmpty } from './whole-rows.js'

export const pushLimits: PushLimits = { rows: 100_000, bytes: 64 * 2 ** 20 }

/** How far a push is. */
export interface PushProgress {
  readonly rows: number
  /** Up to this height everything is in ClickHouse. */
  readonly height: number
  /** Rows for which the tables have no room, of all. */
  readonly leftOut: number
}

/** Batches that are written at once: one more is made meanwhile. */
const writtenAtOnce = 3
/**
 * A batch has no row twice, so nothing is replaced before it is written: ClickHouse then takes half the time. What reads the rows
 * of one batch into the tables goes side by side. A batch is written when the answer is there.
 */
const writeSettings = { optimize_on_insert: 0, parallel_view_processing: 1, async_insert: 0 }

/** Makes the tables that are missing. */
export async function ensureTables(
  client: Pick<ClickhouseClient, 'ask' | 'write'>,
): Promise<'done' | Refusal> {
  const isNew = await lacksWholeRows(client)
  if (isRefusal(isNew)) return isNew
  for (const statement of schemaStatements()) {
    const made = await client.write(statement)
    if (isRefusal(made)) return made
  }
  return isNew ? markIfEmpty(client) : 'done'
}

/** A batch that is being written. */
interface Writing {
  readonly batch: Batch
  readonly written: Promise<'done' | Refusal>
}

/**
 * Writes rows of the index into the tables in ClickHouse, height by height. What is written twice counts once, so a push that was
 * killed begins again behind the last record of whole heights.
 */
export class IndexPush {
  readonly #batches: PushBatches
  #rows = 0
  #leftOut = 0

  constructor(
    private readonly client: Pick<ClickhouseClient, 'ask' | 'write'>,
    private readonly index: ChainIndex,
    private readonly clock: Clock,
    limits: PushLimits = pushLimits,
  ) {
    this.#batches = new PushBatches(index, () => clock.now(), limits)
  }

  /**
   * Writes all rows of these heights, and records them, where ClickHouse has no blocks of another chain. Batches are made while
   * others are written, and recorded in their order.
   * `isLeading` is called before each record: a writer that was replaced records nothing. Nothing is under way when it resolves.
   * Never rejects for what the server does.
   */
  async run(
    heights: StableHeights,
    onProgress: (progress: PushProgress) => void,
    isLeading: () => Promise<boolean> = async () => true,
  ): Promise<PushProgress | Refusal | 'replaced'> {
    const before = await wholeHeights(this.client)
    if (isRefusal(before)) return before
    const chain = { index: this.index, forkDepth: 0 }
    const stable = before && { from: before.from, to: Math.min(before.to, heights.to) }
    const compared = stable && (await sameChain(this.client, chain, stable))
    if (isRefusal(compared)) return compared
    this.#rows = 0
    this.#leftOut = 0
    let done: PushProgress = { rows: 0, height: heights.from - 1, leftOut: 0 }
    let version = before?.version ?? 0
    const underWay: Writing[] = []
    const settle = async (): Promise<Refusal | 'done' | 'replaced'> => {
      const next = underWay.shift()
      if (next === undefined) return 'done'
      const outcome = await next.written
      if (isRefusal(outcome)) return outcome
      const { rows, leftOut, whole } = next.batch
      this.#rows += rows
      this.#leftOut += leftOut
      if (whole === undefined) return 'done'
      if (!(await isLeading())) return 'replaced'
      version = Math.max(this.clock.now(), version + 1)
      const written = { from: heights.from, to: whole, rows: this.#rows }
      const recorded = await recordHeights(this.client, withHeights(before, written, version))
      if (isRefusal(recorded)) return recorded
      done = { rows: this.#rows, height: whole, leftOut: this.#leftOut }
      onProgress(done)
      return 'done'
    }
    const end = async <End>(result: End): Promise<End> => {
      await Promise.all(underWay.map(({ written }) => written))
      return result
    }
    for (const batch of this.#batches.make(heights)) {
      underWay.push({ batch, written: this.#write(batch) })
      // The request leaves before the next batch is made.
      await turn()
      if (underWay.length < writtenAtOnce) continue
      const settled = await settle()
      if (settled !== 'done') return end(settled)
    }
    while (underWay.length > 0) {
      const settled = await settle()
      if (settled !== 'done') return end(settled)
    }
    return done
  }

  async #write({ bytes, rows }: Batch): Promise<'done' | Refusal> {
    if (rows === 0) return 'done'
    const insert = (): Promise<'done' | Refusal> =>
      this.client.write(`INSERT INTO ${inputTable} FORMAT RowBinary`, bytes, writeSettings)
    const written = await insert()
    // A connection that the server had closed meanwhile is no failure of its own, and rows count once.
    return isRefusal(written) ? insert() : written
  }
}
