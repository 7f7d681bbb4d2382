/**
 * Bands between whole programs: one indexes, builds, publishes and seeds; another knows nothing and subscribes; others fetch
 * with programs of their own. `KILLS=20` kills the second so many times while it fetches.
 */
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { Band, PublicationDocument } from '../../src/bands/protocol.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { withoutLibtorrent } from '../bands/libtorrent.js'
import { leech } from '../bands/swarm-rig.js'
import { bundleTags, item, type MadeItem } from '../source/weave.js'
import { payerAt } from './payer.js'
import { type Running, run } from './running.js'

const kills = Number(process.env.KILLS ?? 2)
t.setTimeout(60_000 + kills * 20_000)

const quiet = { DEVNET_SEED: 'false', DEVNET_BLOCK_MS: '0', EDGE_THREADS: '1' }

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 600; tries += 1) {
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

function bandOf(said: PublicationDocument | undefined): Band | undefined {
  return said?.indexes.find(({ name }) => name === 'root-tx-index')?.bands.at(-1)
}

async function head(gateway: string, id: string): Promise<number> {
  return (await fetch(`${gateway}/raw/${id}`, { method: 'HEAD' })).status
}

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

/** Names of files that are not what the document says. */
function wrongFiles({ files }: Band, folder: string): string[] {
  return files.filter(({ name, sha256: told }) => sha256(join(folder, name)) !== told).map(({ name }) => name)
}

/** The first program, with a band of 257 files; seeding takes a few seconds for each who fetches all. */
async function publisher(t: Test) {
  const running = await run(t, join(t.testdir(), 'one'), {
    ...quiet,
    INDEX_PUBLISH: 'true',
    INDEX_SEED: 'true',
    INDEX_TORRENT_PORT: '0',
    INDEX_SCAN_SECONDS: '1',
    INDEX_DELTA_EVERY_SECONDS: '1',
    INDEX_SUPERSEDE_GRACE_SECONDS: '3600',
    INDEX_UPLOAD_LIMIT: '1000000',
  })
  const { gateway = '', devnet: node = '' } = running.urls
  const payer = await payerAt(node)
  const items = Array.from({ length: 3000 }, (_, index) => item(Buffer.from(`item ${index}`)))
  await payer.post(encodeBundle(items), bundleTags)
  await fetch(`${node}/mine/30`)
  const said = await until('a band of 257 files', async () => {
    const now = await document(gateway)
    return bandOf(now)?.files.length === 257 && bandOf(now)?.records === 3000 ? now : undefined
  })
  return { running, gateway, node, payer, items, said }
}

/** The second: follows the same chain, opens no bundle, and asks no gateway for content. */
function subscriber(t: Test, node: string, gateway: string, said: PublicationDocument): Promise<Running> {
  return run(t, join(t.testdirName, 'two'), {
    ...quiet,
    TRUSTED_NODE_URL: node,
    ANS104_UNBUNDLE_FILTER: '{"never":true}',
    INDEX_SUBSCRIPTIONS: `${gateway}#${said.signature.keyId}`,
    INDEX_SUBSCRIPTION_POLL_SECONDS: '1',
    INDEX_SUBSCRIPTION_GRACE_SECONDS: '0',
    INDEX_SUBSCRIPTION_WEB_SECONDS: '3600',
  })
}

t.test('another gateway fetches by torrent, through kills, resolves, and follows', async (t) => {
  const { gateway, node, payer, items, said } = await publisher(t)
  const band = bandOf(said)
  if (band === undefined) throw new Error('no band')
  const shelf = join(t.testdirName, 'two', 'bands')
  const installed = join(shelf, 'installed', 'root-tx-index')
  const fetching = join(shelf, 'fetching', 'root-tx-index')

  for (let index = 0; index < kills; index += 1) {
    const running = await subscriber(t, node, gateway, said)
    await new Promise((resolve) => setTimeout(resolve, 200 + Math.random() * 600))
    await running.kill()
    t.comment(`killed; ${existsSync(join(fetching, band.id)) ? 'half there' : 'nothing, or all there'}`)
  }
  const two = await subscriber(t, node, gateway, said)
  await until('the band is in place', async () => existsSync(join(installed, band.id)) || undefined)
  t.same(wrongFiles(band, join(installed, band.id)), [])
  t.equal(readdirSync(join(installed, band.id)).length, 257)
  const at = two.urls.gateway ?? ''
  const found = await until('an item is found', async () => {
    const some = items[Math.floor(Math.random() * items.length)] as MadeItem
    return (await head(at, some.id)) === 200 ? some : undefined
  })
  const answer = await fetch(`${at}/raw/${found.id}`)
  t.ok(Buffer.from(await answer.arrayBuffer()).equals(found.payload))
  t.match(
    await (await fetch(`${gateway}/gateway/__gateway_metrics`)).text(),
    /torrent_sent_bytes_total [1-9]/,
  )

  const late = item(Buffer.from('later'))
  await payer.post(encodeBundle([late]), bundleTags)
  await fetch(`${node}/mine/30`)
  await until('the newer band is in place, and the older is gone', async () => {
    const names = existsSync(installed) ? readdirSync(installed) : []
    return !names.includes(band.id) && names.length > 0 ? names : undefined
  })
  await until('the newer item is found', async () => ((await head(at, late.id)) === 200 ? true : undefined))
  t.equal(await two.stop(), 0)
})

t.test(
  'libtorrent gets it from the web seed alone, from the tracker alone; aria2 from the web seed',
  {
    skip: withoutLibtorrent(),
  },
  async (t) => {
    const { gateway, said } = await publisher(t)
    const band = bandOf(said)
    const { torrent } = band ?? {}
    if (band === undefined || torrent === undefined) throw new Error('no torrent')
    const file = join(t.testdirName, 'band.torrent')
    const answer = await fetch(`${gateway}${torrent.torrentUrl}`)
    t.equal(answer.headers.get('content-type'), 'application/x-bittorrent')
    writeFileSync(file, Buffer.from(await answer.arrayBuffer()))
    const ways: Record<string, string[]> = {
      web: ['--web', `${gateway}/gateway/indexes/webseed/`],
      tracker: ['--tracker', `${gateway}/gateway/indexes/announce`],
    }
    for (const [name, words] of Object.entries(ways)) {
      const folder = join(t.testdirName, name)
      mkdirSync(folder)
      t.match(await leech(file, folder, ...words), /done/, name)
      t.same(wrongFiles(band, join(folder, readdirSync(folder)[0] ?? '')), [], `files by ${name}`)
    }
    try {
      execFileSync('aria2c', ['--version'], { stdio: 'ignore' })
    } catch {
      t.comment('aria2c is not installed')
      return
    }
    const folder = join(t.testdirName, 'aria')
    const seed = `${gateway}/gateway/indexes/webseed/`
    const still = ['--no-conf', '--enable-dht=false', '--bt-enable-lpd=false', '--seed-time=0']
    await promisify(execFile)('aria2c', [...still, '--dir', folder, '--torrent-file', file, seed], {
      timeout: 60_000,
    })
    t.same(wrongFiles(band, join(folder, readdirSync(folder).find((name) => !name.includes('.')) ?? '')), [])
  },
)
