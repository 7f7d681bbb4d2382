/**
 * The whole program on a disk that fails: some calls are refused (ENOSPC, EIO) under uploads, payments, imports and reads. No
 * thread ends, nothing acknowledged is lost, and all goes on. By hand: DISK_ROUNDS=200 (each fails other calls), DISK_ROUND_MS;
 * DISK_FOLDER on a file system to be tried. DISK_EACH=1: every kind of act is done once, again and again, and each time one other
 * call fails alone, from the first to as many as such a round has (DISK_EACH=N begins with the N-th; ENOSPC and EIO by turns).
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { type Running, run } from '../flow/running.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { type DiskFault, type FaultyDisk, faultyDisk } from './faults.js'
import { loadSettings, MixedLoad } from './mixed-load.js'

const rounds = Number(process.env.DISK_ROUNDS ?? 4)
const roundMs = Number(process.env.DISK_ROUND_MS ?? 2500)
const each = Number(process.env.DISK_EACH ?? 0)
t.setTimeout(each > 0 ? 24 * 3_600_000 : 1_200_000 + rounds * 60_000)

function isUp({ process: { exitCode, signalCode } }: Running): boolean {
  return exitCode === null && signalCode === null
}

/** Rounds in which one call fails alone; how many calls there were to fail, and how many did. */
async function eachAlone(t: Test, program: Running, load: MixedLoad, disk: FaultyDisk): Promise<void> {
  let most = 0
  for (let round = 0; round < 3; round += 1) {
    const before = disk.counts().calls
    await load.once()
    most = Math.max(most, disk.counts().calls - before)
  }
  t.comment(`${most} calls in a round`)
  for (let n = each; n <= most && isUp(program); n += 1) {
    const fault: DiskFault = n % 2 === 0 ? 'ENOSPC' : 'EIO'
    disk.set({ oneOf: 0, fault, alone: disk.counts().calls + n })
    await load.once()
    if (n % 25 === 0) t.comment(`${n}: ${disk.counts().failed} failed, ${JSON.stringify([...load.faults])}`)
  }
  disk.set({ oneOf: 0 })
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
  if (each > 0) await eachAlone(t, program, load, disk)
  const loading = each > 0 ? undefined : load.run(() => isOver, 20)
  for (let round = 0; each === 0 && round < rounds; round += 1) {
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
