import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { createLog } from '../actor/log.js'
import { replaceFile } from '../bands/replace-file.js'
import { parsedJson } from '../format/json.js'
import { type Bulk, openBulk } from '../main/bulk.js'
import { ParquetFault } from '../parquet/parquet-reader.js'
import { importPeer, openPeerExport, type PeerPlace } from '../parquet/peer-import.js'
import { folders } from '../threads/folders.js'
import { grouped, Progress } from './progress-line.js'
import { stopRequested } from './stop-signal.js'

/** Below DATA_PATH: how far each export was taken, by its folder. */
const placesFile = 'adopted-exports.json'
const keptEveryMs = 2000

/**
 * Puts the Parquet export of another gateway into the index. False: something was refused or is left for a second run, and it
 * was printed why.
 */
export async function adoptExport(config: Config, base: string): Promise<boolean> {
  if (!existsSync(join(base, 'blocks', 'data'))) return failed(`${base} holds no blocks/data`)
  const stop = stopRequested()
  let bulk: Bulk
  try {
    bulk = await openBulk(config, 0, systemClock, createLog('warn', 'adopt'), stop)
  } catch (error) {
    return failed((error as Error).message)
  }
  try {
    return await imported(bulk, base, join(folders(config).root, placesFile), stop)
  } catch (error) {
    if (error instanceof ParquetFault) return failed(error.message)
    if (!stop.aborted) throw error
    process.stdout.write('stopped; run the command again to go on\n')
    return false
  } finally {
    await bulk.close()
  }
}

async function imported(bulk: Bulk, base: string, file: string, signal: AbortSignal): Promise<boolean> {
  const places = placesIn(file)
  const before = places.get(base)
  bulk.index.refresh()
  // The index may be another one by now.
  const above = before !== undefined && bulk.index.block(before.height)?.id === before.id ? before.height : -1
  const found = await openPeerExport(base, above)
  const progress = new Progress('blocks', systemClock)
  const left = { blocks: 0, items: 0, rows: 0 }
  let [blocks, rows, lost, keptMs] = [0, 0, 0, systemClock.now()]
  const keep = (): Promise<void> => {
    keptMs = systemClock.now()
    return replaceFile(file, JSON.stringify(Object.fromEntries(places)))
  }
  const target = {
    index: bulk.index,
    write: (request: Parameters<Bulk['write']>[0]) => bulk.write(request),
    keep: () => bulk.keep(),
    remember: (transactions: Parameters<Bulk['remember']>[0]) => {
      lost += bulk.remember(transactions)
    },
    imported: async (moreBlocks: number, moreRows: number, place: PeerPlace) => {
      blocks += moreBlocks
      rows += moreRows
      // Only from what is in the index another run may go on.
      bulk.whenKept(() => places.set(base, place))
      if (systemClock.now() - keptMs >= keptEveryMs) await keep()
      progress.show(blocks, found.blockCount, `${grouped(rows)} rows`)
    },
  }
  try {
    const refusal = await importPeer(found, above, target, left, signal)
    progress.end(blocks, blocks)
    const { height } = places.get(base) ?? {}
    process.stdout.write(
      `export: ${grouped(blocks)} blocks, ${grouped(rows)} rows, to block ${height ?? 'none'}\n`,
    )
    for (const [count, what] of [
      [left.blocks, 'blocks below where the index begins'],
      [left.items, 'items whose transaction the index does not have'],
      [left.rows, 'rows without a block or with an impossible place'],
      [lost, 'bundles that found no room on the agenda'],
    ] as const)
      if (count > 0) process.stdout.write(`left out: ${grouped(count)} ${what}\n`)
    return refusal === undefined ? lost === 0 : failed(refusal.message)
  } finally {
    await keep()
  }
}

function failed(message: string): false {
  process.stderr.write(`sluice adopt: ${message}\n`)
  return false
}

const placesForm = z.record(z.string(), z.object({ height: z.number().int().min(0), id: z.string() }))

function placesIn(file: string): Map<string, PeerPlace> {
  const read = placesForm.safeParse(existsSync(file) ? parsedJson(readFileSync(file, 'utf8')) : undefined)
  return new Map(Object.entries(read.data ?? {}))
}
