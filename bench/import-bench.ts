import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { itemsPerBundle, writeChain } from './node-dump.js'

const help = `import-bench: sluice import of made-up bundles, from the files to the index on disk

  --items N     items in all (100000), 1000 a bundle, signed with Ed25519
  --payload N   bytes of each item's payload (400)

Bundles whose transactions are indexed already are opened, believed (--no-verify) and then proven (data roots and signatures, on
two more threads). Rates of the clock and of the processor, for other work on the machine changes only the first.
`

const program = fileURLToPath(new URL('../src/cli/sluice.js', import.meta.url))
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Runs the command; seconds of the clock and of the processor, all threads. */
function timed(dataPath: string, words: readonly string[]): { wall: number; cpu: number; out: string } {
  const report = join(dataPath, '..', 'time.txt')
  const command = `report=$0; TIMEFORMAT='%R %U %S'; { time "$@" 2>"$report.log"; } 2>"$report"`
  const done = spawnSync(
    '/bin/bash',
    ['-c', command, report, process.execPath, program, 'import', ...words],
    {
      env: { PATH: process.env.PATH ?? '', DATA_PATH: dataPath },
      encoding: 'utf8',
    },
  )
  if (done.status !== 0) throw new Error(`${done.stdout}${readFileSync(`${report}.log`, 'utf8')}`)
  const [wall = 0, user = 0, system = 0] = readFileSync(report, 'utf8').trim().split(' ').map(Number)
  return { wall, cpu: user + system, out: done.stdout + readFileSync(`${report}.log`, 'utf8') }
}

function main(): void {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '100000' },
      payload: { type: 'string', default: '400' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    say(help)
    return
  }
  const items = Number(values.items)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-import-bench-'))
  try {
    const path = join(folder, 'dump')
    const bytes = writeChain(path, items, Number(values.payload))
    say(`${items} items in ${Math.ceil(items / itemsPerBundle)} bundles, ${(bytes / 1e6).toFixed(0)} MB`)
    for (const [name, words] of [
      ['believed', ['--no-verify']],
      ['verified', []],
    ] as const) {
      const data = join(folder, name)
      mkdirSync(data)
      const idle = timed(data, [path, '--no-verify'])
      renameSync(join(path, 'later'), join(path, 'data'))
      const { wall, cpu, out } = timed(data, [path, ...words])
      renameSync(join(path, 'data'), join(path, 'later'))
      const [, told = '?'] = /items [\d ]+, ([\d ]+)\/s/.exec(out) ?? []
      const [, each = '?'] = /, (\d+) bytes each/.exec(out) ?? []
      const processor = Math.round(items / Math.max(cpu - idle.cpu, 0.01))
      say(
        `${name}: ${told} items/s, ${processor} per second of processor time, ${each} bytes each on disk ` +
          `(whole command ${wall.toFixed(1)} s)`,
      )
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

main()
