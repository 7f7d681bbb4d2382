import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { type Log, silentLog } from '../../src/actor/log.js'
import { localAddress } from '../../src/actor/mailbox-address.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { Following, Tip } from '../../src/actor/shared.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { IndexedCatalog } from '../../src/catalog/indexed.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { Ingest } from '../../src/ingest/ingest.js'
import { type IngestParts, ingestDefaults } from '../../src/ingest/ingest-parts.js'
import { sourceDefaults } from '../../src/source/source-defaults.js'
import { dump } from '../catalog/index-model.js'
import { patient } from '../chain/hostile.js'

/** Rows carry the second in which they were first seen: here always the same, so that indexes can be compared. */
export const stillClock = { ...systemClock, now: () => 5_000_000 }

/** The options of the thread in tests: everything quick, everything wanted. */
export function orders(path: string, node: string, generations: SharedArrayBuffer): IngestParts {
  return {
    ...ingestDefaults,
    cacheMaxBytes: 2 ** 30,
    catalogPath: join(path, 'catalog'),
    blobsPath: join(path, 'blobs'),
    agendaPath: join(path, 'agenda'),
    webhooksPath: join(path, 'webhooks'),
    generations,
    tip: new Tip().memory,
    following: new Following().memory,
    meters: new SharedArrayBuffer(meterBytes(meterTable, 1)),
    row: 0,
    chain: { ...patient, nodes: [node], callsMax: 100, waitingMax: 5000, coolMs: 1 },
    chunks: sourceDefaults.chunks,
    location: sourceDefaults.location,
    follow: {
      start: { height: 0 },
      stopHeight: Number.MAX_SAFE_INTEGER,
      forkDepthMax: 18,
      pollMs: 20,
      haltedMs: 100,
    },
    blocksAhead: 10,
    unbundle: {
      ...ingestDefaults.unbundle,
      unbundle: { kind: 'always' },
      index: { kind: 'always' },
      atOnce: 2,
      retryMs: 20,
    },
    proofThreads: 0,
  }
}

export type House = ReturnType<typeof openHouse>

/** As `house`, for a process without tests. */
export function openHouse(
  path: string,
  node: string,
  change: Partial<IngestParts> = {},
  log: Log = silentLog,
) {
  const generations = new Generations()
  const catalogPath = join(path, 'catalog')
  const keeper = new CatalogKeeper({ path: catalogPath, touchEveryMs: 0 }, generations, stillClock)
  const address = localAddress<CatalogRequest, CatalogReply>((message) => keeper.handle(message))
  const given = { ...orders(path, node, generations.memory), ...change }
  const ingest = new Ingest(given, { keeper: address }, systemClock, log)
  const { environment } = openCatalogTables(catalogPath)
  const tables = openIndexTables(environment)
  const index = new ChainIndex(environment, generations)
  const catalog = new IndexedCatalog(catalogPath, generations, index)
  const following = new Following(given.following)
  let stopped: Promise<void> | undefined
  let lost: unknown
  void ingest.run().catch((error: unknown) => {
    if (stopped === undefined) lost = error
  })
  const close = async (): Promise<void> => {
    await ingest.stop()
    if (lost !== undefined) throw lost
    await catalog.close()
    await environment.close()
    await keeper.close()
  }
  return {
    catalog,
    index,
    following,
    tip: new Tip(given.tip),
    meters: new Meters(meterTable, given.meters, 0),
    dump: () => {
      index.refresh()
      return dump(tables)
    },
    check: () => {
      index.refresh()
      return checkIndex(tables)
    },
    stop: () => {
      stopped ??= close()
      return stopped
    },
  }
}

/** A keeper and everything that makes its index grow, on this very thread. */
export function house(
  t: Test,
  node: string,
  change: Partial<IngestParts> = {},
  given: { path?: string; log?: Log } = {},
): House {
  const path = given.path ?? folder(t)
  const made = openHouse(path, node, change, given.log ?? silentLog)
  t.teardown(() => made.stop())
  return made
}

export function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'sluice-ingest-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}
