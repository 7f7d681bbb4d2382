import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { ProvingFetcher } from '../../src/client/fetch/index.js'
import { uploadFolder } from '../../src/client/folder.js'
import { readFolder } from '../../src/client/node/files.js'
import { signerOfEd25519, signerOfEthereum } from '../../src/client/signer.js'
import { scratch } from '../../test/scratch.js'
import { median, short } from '../kit/numbers.js'
import { say, table } from '../kit/say.js'
import { chromiumFetch } from './client-chromium.js'
import { longUpload, made } from './client-long.js'
import { dependencies } from './client-packages.js'
import { clientOf, type Services, startServices } from './client-services.js'
import { turboFolder } from './client-turbo.js'

const help = `client: the client beside its rivals, against services on this machine

  --files N     files of 4 KiB in the folder (10,000)
  --rival N     files that the rival uploads (300): it needs minutes for more
  --mib N       size of the long upload (2048)
  --rounds N    of each fetch (7)
  --only NAMES  folder, long, fetch, chromium, packages
`

const kib = 1024
const mib = kib * kib

function seconds(startMs: number): number {
  return (systemClock.monotonic() - startMs) / 1000
}

function makeFolder(count: number): string {
  const folder = scratch('bench-folder')
  for (let at = 0; at < count; at++) {
    const below = join(folder, `${Math.floor(at / 100)}`)
    if (at % 100 === 0) mkdirSync(below)
    writeFileSync(join(below, `${at}.txt`), Buffer.alloc(4 * kib, `file ${at} of this run ${process.pid} `))
  }
  return folder
}

/** Files a second by each way; both with keys of the same kind. */
async function folders(services: Services, count: number, rivalCount: number): Promise<void> {
  const rows: string[][] = []
  const rates = new Map<string, number>()
  const note = (name: string, files: number, took: number): void => {
    rates.set(name, files / took)
    rows.push([name, String(files), `${took.toFixed(1)} s`, short(files / took)])
  }
  const secret = crypto.getRandomValues(new Uint8Array(32))
  const folder = makeFolder(count)
  for (const [name, signer, bundleSmallFiles, most] of [
    ['ours, in bundles, Ethereum key', await signerOfEthereum(secret), true, count],
    ['ours, in bundles, session key', await signerOfEd25519(secret), true, count],
    ['ours, one by one, Ethereum key', await signerOfEthereum(secret.map((byte) => byte ^ 1)), false, 500],
  ] as const) {
    const { files } = await readFolder(folder)
    const chosen = files.slice(0, most)
    const startMs = systemClock.monotonic()
    await uploadFolder(clientOf(services, signer), { files: chosen, bundleSmallFiles, manifest: false })
    note(name, chosen.length, seconds(startMs))
  }
  rmSync(folder, { recursive: true })
  const small = makeFolder(rivalCount)
  for (const atOnce of [1, 5]) {
    const took = await turboFolder(services, small, atOnce)
    if (took !== undefined) note(`turbo-sdk, ${atOnce} at once, Ethereum key`, rivalCount, took)
  }
  rmSync(small, { recursive: true })
  for (const line of table(['folder of 4 KiB', 'files', 'time', 'files/s'], rows)) say(line)
  const best = Math.max(...[...rates].filter(([name]) => name.startsWith('turbo')).map(([, rate]) => rate))
  const ours = rates.get('ours, in bundles, Ethereum key') ?? 0
  if (Number.isFinite(best)) say(`beside the rival at its best: ${short(ours / best)}x (wanted: 10x)`)
}

/** Whole content by plain fetch and proven, in turns. */
async function fetches(services: Services, rounds: number): Promise<void> {
  const client = clientOf(services, await signerOfEd25519(crypto.getRandomValues(new Uint8Array(32))))
  const fetcher = new ProvingFetcher({ gatewayUrls: [services.gateway] })
  const rows: string[][] = []
  for (const size of [mib, 4 * mib, 16 * mib, 31 * mib, 64 * mib]) {
    const { id } = await client.upload({ data: made(size) })
    const [plain, proven]: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds + 1; round++) {
      let startMs = systemClock.monotonic()
      const bytes = await (await fetch(`${services.gateway}/raw/${id}`)).arrayBuffer()
      const one = seconds(startMs)
      startMs = systemClock.monotonic()
      const response = await fetcher.fetch(id)
      const same = await response.arrayBuffer()
      const other = seconds(startMs)
      if (bytes.byteLength !== size || same.byteLength !== size) throw new Error(`${id} has another size`)
      // The first round warms the gateway.
      if (round === 0) continue
      plain.push(one)
      proven.push(other)
    }
    const [a, b] = [median(plain), median(proven)]
    const rates = [a, b].map((time) => short(size / mib / time))
    rows.push([`${size / mib} MiB`, ...rates, short(a / b)])
  }
  for (const line of table(['whole content', 'fetch MiB/s', 'verifiedFetch MiB/s', 'ratio'], rows)) say(line)
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    options: { files: text, rival: text, mib: text, rounds: text, only: text, help: { type: 'boolean' } },
  })
  if (values.help === true) return say(help)
  const only = values.only?.split(',')
  const isWanted = (name: string): boolean => only === undefined || only.includes(name)
  const number = (given: string | undefined, usual: number): number => Number(given ?? usual)
  if (isWanted('packages')) await dependencies()
  const services = await startServices()
  try {
    if (isWanted('folder')) await folders(services, number(values.files, 10_000), number(values.rival, 300))
    if (isWanted('long')) await longUpload(services, number(values.mib, 2048) * mib)
    if (isWanted('fetch')) await fetches(services, number(values.rounds, 7))
    if (isWanted('chromium')) {
      const client = clientOf(services, await signerOfEd25519(crypto.getRandomValues(new Uint8Array(32))))
      const { id } = await client.upload({ data: made(31 * mib) })
      await chromiumFetch(services.gateway, id, 31)
    }
  } finally {
    await services.stop()
  }
}

await main()
