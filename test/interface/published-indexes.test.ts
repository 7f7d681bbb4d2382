/**
 * Bands between whole programs: one indexes, builds, publishes and seeds; another knows nothing and subscribes; others fetch
 * with programs of their own. `KILLS=20` kills the second so many times while it fetches.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pause } from '../../src/actor/clock.js'
import type { Band, PublicationDocument } from '../../src/bands/publication.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { idBytes } from '../../src/format/id.js'
import { payerAt } from '../flow/payer.js'
import { document, until } from '../flow/published.js'
import { type Running, run, sluice } from '../flow/running.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { bundleTags, item, type MadeItem } from '../source/weave.js'
import { withoutAria, withoutLibtorrent } from '../torrent/libtorrent.js'
import { aria, leech } from '../torrent/swarm-rig.js'

/** Not a test's own: programs may still write into it when a test is over. */
const folder = scratch('bands-flow')

const kills = Number(process.env.KILLS ?? 1)
t.setTimeout(1_200_000 + kills * 20_000)

const quiet = { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0', EDGE_THREADS: '1' }

function bandOf(publication: PublicationDocument | undefined): Band | undefined {
  const bands = publication?.indexes.find(({ name }) => name === 'root-tx-index')?.bands ?? []
  return bands.find(({ files }) => files.length === 257)
}

async function head(gateway: string, id: string): Promise<number> {
  return (await fetch(`${gateway}/raw/${id}`, { method: 'HEAD' })).status
}

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

/** Names of files that are not what the document says. */
function wrongFiles({ files }: Band, folder: string): string[] {
  return files
    .filter(({ name, sha256: announced }) => sha256(join(folder, name)) !== announced)
    .map(({ name }) => name)
}

/**
 * Builds bands beside the running program, which publishes them some seconds later, until there is what `look` looks for: what
 * was posted may not be indexed yet when the first is built.
 */
async function built<T>(dataPath: string, what: string, look: () => Promise<T | undefined>): Promise<T> {
  return until(what, async () => {
    const { code, err } = await sluice(['bands', 'build'], { ...quiet, DATA_PATH: dataPath })
    if (code !== 0) throw new Error(err)
    for (let tries = 0; tries < 60; tries += 1) {
      const found = await look()
      if (found !== undefined) return found
      await pause(100)
    }
    return undefined
  })
}

/** Items for each of the 256 partitions, by the first byte of their ids. */
function itemsOfAllPartitions(): MadeItem[] {
  const items: MadeItem[] = []
  const partitions = new Set<number | undefined>()
  while (partitions.size < 256) {
    const made = item(Buffer.from(`item ${items.length}`))
    partitions.add(idBytes(made.id)[0])
    items.push(made)
  }
  return items
}

/** The first program, with a band of 257 files; seeding takes a few seconds for each who fetches all. */
async function publisher(t: Test) {
  const dataPath = join(folder, 'one')
  const running = await run(t, dataPath, {
    ...quiet,
    INDEX_PUBLISH: 'true',
    INDEX_SEED: 'true',
    INDEX_TORRENT_PORT: '0',
    INDEX_SCAN_SECONDS: '1',
    INDEX_SUPERSEDE_GRACE_SECONDS: '3600',
    INDEX_UPLOAD_LIMIT: '1000000',
  })
  const { gateway = '', devnet: node = '' } = running.urls
  const payer = await payerAt(node)
  const items = itemsOfAllPartitions()
  await payer.post(encodeBundle(items), bundleTags)
  await fetch(`${node}/mine/30`)
  const last = items.at(-1)?.id ?? ''
  await until('the last item is indexed', async () =>
    (await head(gateway, last)) === 200 ? true : undefined,
  )
  const publication = await built(dataPath, 'a band of 257 files', async () => {
    const now = await document(gateway)
    return bandOf(now)?.records === items.length ? now : undefined
  })
  return { running, dataPath, gateway, node, payer, items, publication }
}

/** The second: follows the same chain, opens no bundle, and asks no gateway for content. */
function subscriber(
  t: Test,
  node: string,
  gateway: string,
  publication: PublicationDocument,
): Promise<Running> {
  return run(t, join(folder, 'two'), {
    ...quiet,
    TRUSTED_NODE_URL: node,
    ANS104_UNBUNDLE_FILTER: '{"never":true}',
    INDEX_SUBSCRIPTIONS: `${gateway}#${publication.signature.keyId}`,
    INDEX_SUBSCRIPTION_POLL_SECONDS: '1',
    INDEX_SUBSCRIPTION_GRACE_SECONDS: '0',
    INDEX_SUBSCRIPTION_WEB_SECONDS: '3600',
  })
}

type Publisher = Awaited<ReturnType<typeof publisher>>

async function anotherGateway(t: Test, one: Publisher): Promise<void> {
  const { dataPath, gateway, node, payer, items, publication } = one
  const band = bandOf(publication)
  if (band === undefined) throw new Error('no band')
  const group = join(folder, 'two', 'bands')
  const installed = join(group, 'installed', 'root-tx-index')
  const fetching = join(group, 'fetching', 'root-tx-index')

  for (let index = 0; index < kills; index += 1) {
    const running = await subscriber(t, node, gateway, publication)
    await pause(200 + random() * 600)
    await running.kill()
    t.comment(`killed; ${existsSync(join(fetching, band.id)) ? 'half there' : 'nothing, or all there'}`)
  }
  const two = await subscriber(t, node, gateway, publication)
  await until('the band is in place', async () => existsSync(join(installed, band.id)) || undefined)
  t.same(wrongFiles(band, join(installed, band.id)), [])
  t.equal(readdirSync(join(installed, band.id)).length, 257)
  const at = two.urls.gateway ?? ''
  const found = await until('an item is found', async () => {
    const some = items[Math.floor(random() * items.length)] as MadeItem
    return (await head(at, some.id)) === 200 ? some : undefined
  })
  const answer = await fetch(`${at}/raw/${found.id}`)
  t.ok(Buffer.from(await answer.arrayBuffer()).equals(found.payload))
  t.match(
    await (await fetch(`${gateway}/gateway/__gateway_metrics`)).text(),
    /torrent_sent_bytes_total\S* [1-9]/,
  )

  const late = item(Buffer.from('later'))
  await payer.post(encodeBundle([late]), bundleTags)
  await fetch(`${node}/mine/30`)
  await until('the newer item is indexed', async () =>
    (await head(gateway, late.id)) === 200 ? true : undefined,
  )
  await built(dataPath, 'a newer band', async () => {
    const now = bandOf(await document(gateway))
    return now === undefined || now.id === band.id ? undefined : now
  })
  await until('the newer band is in place, and the older is gone', async () => {
    const names = existsSync(installed) ? readdirSync(installed) : []
    return !names.includes(band.id) && names.length > 0 ? names : undefined
  })
  await until('the newer item is found', async () => ((await head(at, late.id)) === 200 ? true : undefined))
  t.equal(await two.stop(), 0)
}

async function otherPrograms(t: Test, { gateway, publication }: Publisher): Promise<void> {
  const band = bandOf(publication)
  const { torrent } = band ?? {}
  if (band === undefined || torrent === undefined) throw new Error('no torrent')
  const file = join(folder, 'band.torrent')
  const answer = await fetch(`${gateway}${torrent.torrentUrl}`)
  t.equal(answer.headers.get('content-type'), 'application/x-bittorrent')
  writeFileSync(file, Buffer.from(await answer.arrayBuffer()))
  const announceUrl = `${gateway}/gateway/indexes/announce?port=1&info_hash=${torrent.infohashV1.replace(/../g, '%$&')}`
  await until('the tracker knows the band', async () => {
    return (await (await fetch(announceUrl)).text()).includes('interval') || undefined
  })
  const magnet = await fedMagnet(gateway, band.id)
  t.match(torrentName(torrent.magnet), torrentName(magnet))
  // The .torrent file and the magnet name the tracker, and nobody tells these programs of a peer.
  const ways: Record<string, () => Promise<unknown>> = {
    web: () => leech(file, place('web'), '--tracker', '', '--web', `${gateway}/gateway/indexes/webseed/`),
    file: () => leech(file, place('file')),
    magnet: () => leech(magnet, place('magnet')),
  }
  for (const [name, fetched] of Object.entries(ways)) {
    await fetched()
    t.same(wrongFiles(band, join(place(name), torrentName(magnet))), [], `files by ${name}`)
  }
  // aria2 fetches the zeros between files, too, 64 MB of them: one file is enough.
  const first = { ...band, files: band.files.slice(0, 1) }
  for (const words of [
    ['--torrent-file', file],
    ['--follow-torrent=mem', magnet],
  ]) {
    const path = place(`aria${words[0]}`)
    await aria(path, '--select-file=1', ...words)
    t.same(wrongFiles(first, join(path, torrentName(magnet))), [], `a file by aria2 ${words[0]}`)
  }
}

/** A folder for what one program fetches. */
function place(name: string): string {
  const path = join(folder, name)
  mkdirSync(path, { recursive: true })
  return path
}

function torrentName(magnet: string): string {
  return new URL(magnet).searchParams.get('dn') ?? ''
}

/** The magnet of a band as a torrent client reads it out of the feed. */
async function fedMagnet(gateway: string, id: string): Promise<string> {
  const feed = await (await fetch(`${gateway}/gateway/indexes/feed/root-tx-index.xml`)).text()
  const [, found = ''] = new RegExp(`<title>${id}</title><link>([^<]+)</link>`).exec(feed) ?? []
  return found.replaceAll('&#38;', '&')
}

t.test('bands go from program to program', async (t) => {
  const one = await publisher(t)
  const skip = withoutLibtorrent() || withoutAria()
  await t.test(
    'libtorrent and aria2 by .torrent file and by magnet alone, libtorrent by web seed alone',
    { skip },
    (t) => {
      return otherPrograms(t, one)
    },
  )
  await t.test('another gateway by torrent, through kills; it resolves, and follows', (t) => {
    return anotherGateway(t, one)
  })
  await one.running.stop()
})
