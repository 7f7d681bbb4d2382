/** Both kinds of bands, kept up to date by a whole program. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { document, until } from './published.js'
import { run } from './running.js'

t.test('a publisher keeps both kinds of bands up to date, where the operator wants both', async (t) => {
  const dataPath = t.testdir()
  const running = await run(t, dataPath, {
    SERVICES: 'gateway',
    DEVNET_BLOCK_MS: '0',
    EDGE_THREADS: '1',
    INDEX_PUBLISH: 'true',
    INDEX_PARQUET: 'true',
    INDEX_SCAN_SECONDS: '1',
    INDEX_DELTA_EVERY_SECONDS: '1',
    INDEX_SUPERSEDE_GRACE_SECONDS: '0',
    CHAIN_FORK_DEPTH_MAX: '5',
  })
  const { gateway = '', devnet: node = '' } = running.urls
  const top = async (): Promise<number | undefined> => {
    const indexes = (await document(gateway))?.indexes ?? []
    if (!indexes.some(({ name }) => name === 'root-tx-index')) return undefined
    const bands = indexes.find(({ name }) => name === 'parquet-l1')?.bands ?? []
    return bands.length === 1 ? (bands[0]?.heightRange?.[1] ?? undefined) : undefined
  }
  await fetch(`${node}/mine/20`)
  const first = await until('both kinds', top)
  await fetch(`${node}/mine/20`)
  const next = await until('a band that reaches further', async () => {
    const now = await top()
    return now !== undefined && now >= first + 20 ? now : undefined
  })
  const folders = readdirSync(join(dataPath, 'bands', 'own', 'parquet-l1'))
  t.ok(folders.some((name) => name.startsWith(`l1-h0-${next}-`)))
  t.equal(await running.stop(), 0)
})
