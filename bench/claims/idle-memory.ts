import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { pause } from '../../src/actor/clock.js'
import { emptyFolder } from '../kit/folders.js'
import { say } from '../kit/say.js'
import { readyProgram, startProgram } from '../kit/started.js'

const help = `idle-memory: what the program with two edge threads takes when nobody asks

  --seconds N  after the start (30)
  --seeded     with the site of devnet, which takes work at the start
`

/** MB (10^6) of a process, from the kernel's sums over its mappings. */
function megabytes(pid: number, name: string): string {
  const kiB = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(
    readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'),
  )?.[1]
  return `${((Number(kiB) * 1024) / 1e6).toFixed(0)} MB`
}

async function measure(seconds: number, seeded: boolean): Promise<void> {
  const folder = emptyFolder('idle-memory')
  const child = startProgram(folder, { DEVNET_SEED: String(seeded) })
  const exited = once(child, 'exit')
  await readyProgram(child)
  const pid = child.pid ?? 0
  for (const at of [0, seconds]) {
    await pause(at * 1000)
    const own = `${megabytes(pid, 'Anonymous')} of its own`
    say(`${at} s after the start: ${own}, ${megabytes(pid, 'Pss')} with its share of files`)
  }
  child.kill('SIGTERM')
  await exited
  rmSync(folder, { recursive: true, force: true })
}

const { values } = parseArgs({
  options: { help: { type: 'boolean' }, seconds: { type: 'string' }, seeded: { type: 'boolean' } },
})
if (values.help === true) say(help)
else await measure(Number(values.seconds ?? 30), values.seeded === true)
