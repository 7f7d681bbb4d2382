import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import { indexBytes, openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { Chain, messagesOf } from '../index/chain.js'
import { say } from '../kit/say.js'

const help = `index-growth: what a row costs the writer of the index while the index grows

  --items N        items of the made-up chain (1000000)
  --every N        one line for so many rows (100000)
  --at-once N      blocks of 2000 items that wait for one commit (20)
  --folder PATH    where the index goes and stays (a temporary folder, removed at the end)

Processor time of the writer alone, user and system; its helper threads (garbage collection, compilation) count too.
`

class Spent {
  rows = 0
  user = 0
  system = 0
  wall = 0

  async of(act: () => Promise<void>): Promise<void> {
    const cpu = process.cpuUsage()
    const started = systemClock.monotonic()
    await act()
    const { user, system } = process.cpuUsage(cpu)
    this.user += user
    this.system += system
    this.wall += systemClock.monotonic() - started
  }

  line(total: number, bytes: number): string {
    const each = (micros: number): string => (micros / this.rows).toFixed(1).padStart(6)
    const perSecond = Math.round((this.rows * 1e6) / (this.user + this.system))
    const wallRate = Math.round((this.rows * 1000) / this.wall)
    return (
      `${String(total).padStart(10)} rows: ${each(this.user + this.system)} us each (${each(this.user)} user,` +
      `${each(this.system)} system), ${perSecond} per second of processor time, ${wallRate} rows/s, ` +
      `${Math.round(bytes / total)} bytes each`
    )
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '1000000' },
      every: { type: 'string', default: '100000' },
      'at-once': { type: 'string', default: '20' },
      folder: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return say(help)
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-index-growth-'))
  const path = join(folder, 'catalog')
  const keeper = new CatalogKeeper({ path, touchEveryMs: 1000 }, new Generations(), systemClock)
  const { environment } = openCatalogTables(path)
  const tables = openIndexTables(environment)
  const chain = new Chain({
    items: Number(values.items),
    itemsPerBundle: 1000,
    bundlesPerBlock: 2,
    seed: 1,
  })
  let total = 0
  let spent = new Spent()
  let waiting: IndexRequest[] = []
  let blocks = 0
  const flush = async (): Promise<void> => {
    const messages = waiting
    waiting = []
    await spent.of(async () => {
      await Promise.all(messages.map((message) => keeper.handle(message)))
    })
  }
  for (const made of chain.blocks()) {
    waiting.push(...messagesOf(made))
    spent.rows += made.transactions.length + made.bundles.reduce((sum, { items }) => sum + items.length, 0)
    blocks += 1
    if (blocks % Number(values['at-once']) !== 0) continue
    await flush()
    if (spent.rows < Number(values.every)) continue
    total += spent.rows
    environment.refresh()
    say(spent.line(total, indexBytes(tables)))
    spent = new Spent()
  }
  if (waiting.length > 0) await flush()
  await environment.close()
  await keeper.close()
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
}

await main()
