/**
 * The whole program on a disk that fails: some calls are refused (ENOSPC, EIO) under uploads, payments, imports and reads. No
 * thread ends, nothing acknowledged is lost, and all goes on. By hand: DISK_ROUNDS=200 (each fails other calls), DISK_ROUND_MS;
 * DISK_FOLDER on a file system to be tried.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { type Running, run } from '../flow/running.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { type DiskFault, faultyDisk } from './faults.js'
import { loadSettings, MixedLoad } from './mixed-load.js'

const rounds = Number(process.env.DISK_ROUNDS ?? 4)
const roundMs = Number(process.env.DISK_ROUND_MS ?? 2500)
t.setTimeout(120_000 + rounds * 60_000)

function isUp({ process: { exitCode, signalCode } }: Running): boolean {
  return exitCode === null && signalCode === null
}

t.test('no failed call ends a thread, or loses what was acknowledged', async (t) => {
  const base = process.env.DISK_FOLDER ?? scratch('failing-calls')
  const [folder, beside] = [join(base, 'data'), scratch('faults')]
  for (const one of [folder, beside]) mkdirSync(one, { recursive: true })
  const disk = faultyDisk(folder, beside)
  if (typeof disk === 'string') return t.comment(disk)
  t.teardown(() => disk.close())
  const program = await run(t, folder, { ...loadSettings, ...disk.environment })
  const load = new MixedLoad(program, random)
  await load.begin()
  let isOver = false
  const loading = load.run(() => isOver, 20)
  for (let round = 0; round < rounds; round += 1) {
    const fault: DiskFault = round % 2 === 0 ? 'ENOSPC' : 'EIO'
    const oneOf = [40, 1, 7, 100][Math.floor(round / 2) % 4] ?? 40
    disk.set({ oneOf, seed: Math.floor(random() * 2 ** 31), fault })
    const endMs = systemClock.monotonic() + (oneOf === 1 ? Math.min(roundMs, 3000) : roundMs)
    while (systemClock.monotonic() < endMs && isUp(program)) await pause(20)
    disk.set({ oneOf: 0 })
    await pause(300)
    if (!isUp(program)) break
  }
  isOver = true
  await loading
  t.ok(isUp(program), 'it runs')
  const fatal = program.log.filter(({ level }) => Number(level) >= 60)
  t.strictSame(fatal, [], 'no thread has ended')
  t.comment(JSON.stringify(load.outcomes))
  t.comment(JSON.stringify(disk.counts()))
  t.strictSame([...load.faults], [])
  t.ok(load.brokenShare < 0.03, `${load.brokenShare} of the connections broke`)
  if (!t.passing()) return
  t.comment(JSON.stringify(await load.compare(folder)))
  t.end()
})
