import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../config/read.js'
import { pushIndex } from '../../src/cli/clickhouse-push.js'
import { exitCode } from '../../src/cli/exit-code.js'
import { recordHeights, wholeHeights } from '../../src/clickhouse/heights.js'
import { ensureTables } from '../../src/clickhouse/index-push.js'
import { clickhouseAbsent, startClickhouse } from '../engines/clickhouse.js'
import { scratch } from '../scratch.js'
import { openChainHouse } from './house.js'

t.test(
  'sluice index push leaves no gap between what is there and what it writes',
  clickhouseAbsent,
  async (t) => {
    const engine = await startClickhouse()
    const house = await openChainHouse(450)
    t.teardown(async () => {
      await house.close()
      await engine.stop()
    })
    const data = scratch('push-command')
    mkdirSync(data, { recursive: true })
    symlinkSync(house.path, join(data, 'catalog'))
    const config = readConfig(
      { DATA_PATH: data, CLICKHOUSE_URL: engine.url, CLICKHOUSE_PASSWORD: engine.password },
      {},
    )
    if (Array.isArray(config)) throw new Error(config.join())
    const client = engine.client()
    await ensureTables(client)
    const top = house.index.topHeight() ?? 0
    const lowest = house.index.linkedDown(top, 10_000)
    const push = (from?: number): Promise<number> => pushIndex(config, { from, to: undefined })
    await recordHeights(client, { from: 0, to: lowest - 10, rows: 0, version: 1 })
    t.equal(await push(), exitCode.notFound, 'heights between are missing')
    t.match(await wholeHeights(client), { from: 0, to: lowest - 10 })
    await recordHeights(client, { from: 0, to: lowest - 1, rows: 0, version: 2 })
    t.equal(await push(), exitCode.done)
    t.match(await wholeHeights(client), { from: 0, to: top - config.indexing.forkDepthMax })
    t.equal(await push(), exitCode.done, 'there is nothing more')
  },
)
