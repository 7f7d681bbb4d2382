/**
 * By hand: `node dist/test/disk/full-for-minutes.js MINUTES [FOLDER]` (1 minute, a file system in memory of 400 MB). Fills the
 * disk of DATA_PATH to the last byte for so long under uploads, payments, imports, orders and reads; then gives room, and
 * compares all that was acknowledged before and meanwhile. FOLDER: on a file system of its own, as a loop device with ext4.
 */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { fillDisk } from '../fill-disk.js'
import { type Running, run } from '../flow/running.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { loadSettings, MixedLoad } from './mixed-load.js'

const [minutesText = '1', given] = process.argv.slice(2)
const fullMs = Number(minutesText) * 60_000
const beforeMs = 20_000
/** What is freed meanwhile is filled again. */
const againMs = 500

t.setTimeout(fullMs + 3_600_000)

async function start(folder: string): Promise<{ readonly program: Running; readonly filler: string }> {
  if (given !== undefined) {
    return { program: await run(t, folder, loadSettings), filler: join(folder, 'filler') }
  }
  const mount = 'mount -t tmpfs -o size=400m none "$0" && exec "$@"'
  const under = ['unshare', '--map-root-user', '--mount', 'sh', '-c', mount, folder]
  const program = await run(t, folder, loadSettings, [], under)
  return { program, filler: join(`/proc/${program.process.pid}/root`, folder, 'filler') }
}

function isUp({ process: { exitCode, signalCode } }: Running): boolean {
  return exitCode === null && signalCode === null
}

t.test(`a disk that is full for ${minutesText} minutes`, async (t) => {
  const folder = given === undefined ? scratch('full') : join(given, 'data')
  const { program, filler } = await start(folder)
  const load = new MixedLoad(program, random)
  await load.begin()
  let isOver = false
  const loading = load.run(() => isOver, 30)
  await pause(beforeMs)
  t.comment(`before: ${JSON.stringify(load.outcomes)}`)
  const endMs = systemClock.monotonic() + fullMs
  const fillers: string[] = []
  while (systemClock.monotonic() < endMs && isUp(program)) {
    fillers.push(`${filler}-${fillers.length}`)
    fillDisk(fillers.at(-1) ?? filler)
    await pause(againMs)
  }
  if (!isUp(program)) {
    isOver = true
    const { exitCode, signalCode } = program.process
    t.comment(
      JSON.stringify({ exitCode, signalCode, log: program.log.slice(-5), noise: program.noise.slice(-3) }),
    )
    t.fail('it has ended')
    return
  }
  const health = await fetch(`${program.urls.gateway}/gateway/healthcheck`)
  t.comment(`full: ${JSON.stringify(load.outcomes)}, health ${health.status} ${await health.text()}`)
  for (const one of fillers) rmSync(one)
  await pause(beforeMs)
  isOver = true
  await loading
  t.comment(`after: ${JSON.stringify(load.outcomes)}`)
  t.ok(isUp(program), 'it runs')
  t.strictSame(
    program.log.filter(({ level }) => Number(level) >= 60),
    [],
    'no thread has ended',
  )
  t.strictSame([...load.faults], [])
  t.ok(load.brokenShare < 0.03, `${load.brokenShare} of the connections broke`)
  const errors = new Map<unknown, number>()
  for (const { level, msg } of program.log)
    if (Number(level) >= 40) errors.set(msg, (errors.get(msg) ?? 0) + 1)
  t.comment(`log: ${JSON.stringify([...errors])}`)
  t.comment(`noise: ${program.noise.join('').slice(0, 500)}`)
  if (given === undefined) t.comment(JSON.stringify(await load.compare()))
  else t.comment(JSON.stringify(await load.compare(folder)))
})
