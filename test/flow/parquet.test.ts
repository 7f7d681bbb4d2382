/** Both kinds of bands, kept up to date by a whole program. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { PublicationDocument } from '../../src/bands/protocol.js'
import { run } from './running.js'

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 400; tries += 1) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`in vain: ${what}`)
}

async function document(gateway: string): Promise<PublicationDocument | undefined> {
  const answer = await fetch(`${gateway}/gateway/indexes`)
  return answer.status === 200 ? ((await answer.json()) as PublicationDocument) : undefined
}

t.test('who publishes keeps both kinds of bands up to date, where the operator wants both', async (t) => {
  const dataPath = t.testdir()
  const running = await run(t, dataPath, {
    ...{ DEVNET_SEED: 'false', DEVNET_BLOCK_MS: '0', EDGE_THREADS: '1' },
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
