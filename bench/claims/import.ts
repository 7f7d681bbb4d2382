import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { itemsPerBundle, writeChain } from '../cases/node-dump.js'
import { sluiceWords } from '../kit/folders.js'
import { say } from '../kit/say.js'

const help = `import-bench: sluice import of made-up bundles, from the files to the index on disk

  --items N     items in all (100000), 1000 a bundle
  --parts N     calls of the command that share them (1): what an item costs while the index grows
  --payload N   bytes of each item's payload (400)
  --believed    without signatures and without proving: for many items
  --folder PATH where all of it goes (a temporary folder, removed at the end)

Bundles whose transactions are indexed already are opened, believed (--no-verify) and then proven (data roots and signatures by
Ed25519, on two more threads). Rates of the clock and of the processor, for other work on the machine changes only the first; the
start of the command does not count.
`

/** Runs the command; seconds of the clock and of the processor, all threads. */
function timed(dataPath: string, words: readonly string[]): { wall: number; cpu: number; out: string } {
  const report = join(dataPath, '..', 'time.txt')
  const command = `report=$0; TIMEFORMAT='%R %U %S'; { time "$@" 2>"$report.log"; } 2>"$report"`
  const done = spawnSync(
    '/bin/bash',
    ['-c', command, report, process.execPath, ...sluiceWords, 'import', ...words],
    {
      env: { PATH: process.env.PATH ?? '', DATA_PATH: dataPath },
      encoding: 'utf8',
    },
  )
  if (done.status !== 0) throw new Error(`${done.stdout}${readFileSync(`${report}.log`, 'utf8')}`)
  const [wall = 0, user = 0, system = 0] = readFileSync(report, 'utf8').trim().split(' ').map(Number)
  return { wall, cpu: user + system, out: done.stdout + readFileSync(`${report}.log`, 'utf8') }
}

/** Imports all bundles of the dump, some with each call, and tells the rates of each. */
function measure(folder: string, name: string, words: readonly string[], parts: readonly string[][]): void {
  const path = join(folder, 'dump')
  const data = join(folder, name)
  mkdirSync(data)
  mkdirSync(join(path, 'data'))
  timed(data, [path, '--no-verify'])
  const idle = timed(data, [path, '--no-verify'])
  for (const ids of parts) {
    for (const id of ids) renameSync(join(path, 'later', id), join(path, 'data', id))
    const { wall, cpu, out } = timed(data, [path, ...words])
    for (const id of ids) renameSync(join(path, 'data', id), join(path, 'later', id))
    const items = ids.length * itemsPerBundle
    const [, all = '?', each = '?'] = /: ([\d ]+) transactions and items, (\d+) bytes each/.exec(out) ?? []
    const micros = (Math.max(cpu - idle.cpu, 0.01) * 1e6) / items
    const rate = Math.round(items / Math.max(wall - idle.wall, 0.01))
    say(
      `${name}: ${rate} items/s, ${Math.round(1e6 / micros)} per second of processor time (${micros.toFixed(1)} us each), ` +
        `${each} bytes each on disk, ${all} rows then`,
    )
  }
  rmSync(join(path, 'data'), { recursive: true })
}

function main(): void {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '100000' },
      parts: { type: 'string', default: '1' },
      payload: { type: 'string', default: '400' },
      believed: { type: 'boolean', default: false },
      folder: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    say(help)
    return
  }
  const items = Number(values.items)
  const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'sluice-import-bench-'))
  try {
    const { bytes, ids } = writeChain(join(folder, 'dump'), items, Number(values.payload), !values.believed)
    say(`${items} items in ${ids.length} bundles, ${(bytes / 1e6).toFixed(0)} MB`)
    const each = Math.ceil(ids.length / Number(values.parts))
    const parts = Array.from({ length: Math.ceil(ids.length / each) }, (_, part) =>
      ids.slice(part * each, (part + 1) * each),
    )
    measure(folder, 'believed', ['--no-verify'], parts)
    if (!values.believed) measure(folder, 'verified', [], parts)
  } finally {
    if (values.folder === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

main()
