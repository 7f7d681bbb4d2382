import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { ClickhouseClient } from '../../src/clickhouse/clickhouse-client.js'
import { ensureTables, IndexPush } from '../../src/clickhouse/index-push.js'
import { isRefusal } from '../../src/format/refusal.js'
import { startClickhouse } from '../../test/engines/clickhouse.js'
import { buildInBulk } from '../index/bulk-build.js'
import { memoryMiB } from '../index/spent.js'
import { say, table } from '../kit/say.js'

const help = `index-push: rows of segments written into ClickHouse, and what each part of it costs

  --items N        items of the made-up chain (500000)
  --folder PATH    where its index is kept, or is already (a temporary folder, removed at the end)
  --engine         also into ClickHouse's own engine, in a process of its own

Processor time of each process, user and system. \`counted\`: the batches are made and thrown away. \`sent\`: to a
server that reads and forgets them.
`

const ticksPerSecond = 100
type Client = ConstructorParameters<typeof IndexPush>[0]

/** Processor time of another process so far, in microseconds. */
function spentBy(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return ((Number(fields[11]) + Number(fields[12])) * 1e6) / ticksPerSecond
}

/** What a push of the whole index took, a row. */
async function pushed(index: ChainIndex, client: Client, name: string, engine?: number): Promise<string[]> {
  index.refresh()
  const top = index.topHeight() ?? 0
  const heights = { from: index.linkedDown(top, top + 1), to: top }
  const [before, other, begun] = [
    process.cpuUsage(),
    engine === undefined ? 0 : spentBy(engine),
    systemClock.monotonic(),
  ]
  const done = await new IndexPush(client, index, systemClock).run(heights, () => undefined)
  if (done === 'replaced' || isRefusal(done)) throw new Error(`no push: ${JSON.stringify(done)}`)
  const { user, system } = process.cpuUsage(before)
  const elapsedMs = systemClock.monotonic() - begun
  const there = engine === undefined ? 0 : spentBy(engine) - other
  const each = (microseconds: number): string => (microseconds / done.rows).toFixed(2)
  const perSecond = Math.round((done.rows * 1000) / elapsedMs)
  const bound = Math.round((2e6 * done.rows) / (user + system + there))
  return [name, each(user + system), each(there), String(perSecond), String(bound), String(memoryMiB())]
}

/** A server that says yes to all. */
async function counting(): Promise<{ client: ClickhouseClient; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume()
    request.once('end', () => response.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  const about = {
    url,
    database: 'default',
    user: 'default',
    password: '',
    timeoutMs: 20_000,
    writeMs: 60_000,
  }
  const client = new ClickhouseClient({ ...about, slots: 8, waitingMax: 64, clientMax: 64 }, systemClock)
  return {
    client,
    async close() {
      await client.close()
      server.close()
      server.closeAllConnections()
    },
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '500000' },
      folder: { type: 'string' },
      engine: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return say(help)
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-index-push-'))
  const { environment } = openCatalogTables(join(folder, 'catalog'))
  let index = new ChainIndex(environment, new Generations())
  if (index.topHeight() === undefined) {
    await environment.close()
    const built = { items: Number(values.items), merged: 8, rows: 250_000, folder, byStage: false }
    index = (await buildInBulk(built)).index
  }
  const none: Client = { ask: async () => Buffer.alloc(0), write: async () => 'done' }
  // The first one is not counted.
  await pushed(index, none, 'warm-up')
  const rows = [await pushed(index, none, 'counted')]
  const sink = await counting()
  rows.push(await pushed(index, sink.client, 'sent'))
  await sink.close()
  if (values.engine) {
    const engine = await startClickhouse()
    const client = engine.client()
    const made = await ensureTables(client)
    if (isRefusal(made)) throw new Error(made.message)
    rows.push(await pushed(index, client, 'into ClickHouse', engine.child.pid))
    await engine.stop()
  }
  const head = ['', 'us here', 'us there', 'rows/s', 'rows/s of 2 processors', 'MiB at most']
  for (const line of table(head, rows)) say(line)
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
}

await main()
