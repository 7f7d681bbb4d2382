import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/actor/clock.js'
import { Generations } from '../src/catalog/generations.js'
import { CatalogKeeper } from '../src/catalog/keeper.js'
import { parseId } from '../src/format/id.js'
import { sha256 } from '../src/proof/digest.js'
import { blobPath } from '../src/store/blobs.js'
import { type Candidate, startGateway } from './candidates.js'
import { makeLoad, type Outcome } from './load.js'
import { writeChain } from './node-dump.js'
import { benchObject } from './objects.js'

const help = `while-importing: cached GETs of a gateway that unbundles, verifies and indexes as fast as it can

  --items N     items to be imported (60000)
  --seconds N   of each slice of load (2)
  --slices N    pairs of them at most (6)
  --edges N     edge threads (1)

Beside it stands one that is idle. Both run the whole program. The importing one has proven bundles in its store and on its
agenda, so that nothing waits for a network. Slices alternate; while the idle one is asked the other is stopped (SIGSTOP).
Ends when the import does, at the latest.
`

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const program = fileURLToPath(new URL('../src/cli/sluice.js', import.meta.url))
/** A node that is not there: what is to be imported lies in the data folder. */
const offline = {
  ...{ NETWORK: 'mainnet', TRUSTED_NODE_URL: 'http://127.0.0.1:9', START_HEIGHT: '0' },
  ...{ ANS104_UNBUNDLE_FILTER: '{"always":true}', ANS104_INDEX_FILTER: '{"always":true}' },
}

/** Blocks into the index, their bundles on the agenda, the bundles' bytes into the store as proven. */
async function prepare(dataPath: string, dump: string): Promise<void> {
  const env = { PATH: process.env.PATH ?? '', DATA_PATH: dataPath }
  const done = spawnSync(process.execPath, [program, 'import', dump, '--no-verify'], {
    env,
    encoding: 'utf8',
  })
  if (done.status !== 0) throw new Error(done.stdout + done.stderr)
  const options = { path: join(dataPath, 'catalog'), touchEveryMs: 60_000 }
  const keeper = new CatalogKeeper(options, new Generations(), systemClock)
  for (const name of readdirSync(join(dump, 'later'))) {
    const id = parseId(name)
    if (id === undefined) continue
    const bytes = readFileSync(join(dump, 'later', name))
    const digest = sha256(bytes)
    const blob = blobPath(join(dataPath, 'blobs'), digest)
    mkdirSync(dirname(blob), { recursive: true, mode: 0o700 })
    writeFileSync(blob, bytes)
    const known = { id, size: bytes.length, digest, verified: true, trusted: true }
    await keeper.handle({ kind: 'learn', attributes: [known] })
    await keeper.handle({ kind: 'kept', digest, sizeBytes: bytes.length })
  }
  await keeper.close()
}

async function itemsOf({ port }: Candidate): Promise<number> {
  // A connection of its own: one that was kept may have ended while the gateway was stopped.
  const request = get({ port, host: '127.0.0.1', path: '/gateway/__gateway_metrics', agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of response) text += String(piece)
  return Number(/^\w*data_items_indexed_total\S* (\d+)/m.exec(text)?.[1] ?? 0)
}

function middle(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[values.length >> 1] ?? 0
}

function described(name: string, { requests, seconds, p99Us }: Outcome): string {
  return `${name} ${Math.round(requests / seconds)}/s p99 ${p99Us} us`
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '60000' },
      seconds: { type: 'string', default: '2' },
      slices: { type: 'string', default: '6' },
      edges: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    say(help)
    return
  }
  const [items, seconds, edges] = [Number(values.items), Number(values.seconds), Number(values.edges)]
  const slices = Number(values.slices)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-while-importing-'))
  const object = benchObject('1k')
  writeChain(join(folder, 'dump'), items, 400, true)
  const idle = await startGateway([object], edges, { name: 'idle', settings: offline })
  const importing = await startGateway([object], edges, {
    ...{ name: 'importing', settings: offline },
    prepare: (dataPath) => prepare(dataPath, join(folder, 'dump')),
  })
  const load = (port: number): Promise<Outcome> =>
    makeLoad({ port, connections: 32, seconds, method: 'GET', path: `/${object.id}` })
  const outcomes: { idle: Outcome; importing: Outcome }[] = []
  let imported = 0
  let before = await itemsOf(importing)
  say(`${before} items were there before the first slice`)
  for (let slice = 0; slice < slices; slice += 1) {
    process.kill(importing.pid, 'SIGSTOP')
    const alone = await load(idle.port)
    process.kill(importing.pid, 'SIGCONT')
    const beside = await load(importing.port)
    const now = await itemsOf(importing)
    if (now >= items) break
    outcomes.push({ idle: alone, importing: beside })
    say(`${described('idle', alone)}, ${described('importing', beside)}, ${now - before} items meanwhile`)
    imported += now - before
    before = now
  }
  const share = (of: (outcome: Outcome) => number): string =>
    middle(outcomes.map((one) => of(one.importing) / of(one.idle))).toFixed(2)
  const [throughput, p99] = [share(({ requests }) => requests), share(({ p99Us }) => p99Us)]
  const rate = Math.round(imported / (outcomes.length * seconds))
  say(`importing / idle: throughput ${throughput}, p99 ${p99}; meanwhile ${rate} items/s, verified`)
  await Promise.all([idle.stop(), importing.stop()])
  rmSync(folder, { recursive: true, force: true })
}

await main()
