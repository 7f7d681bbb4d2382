/**
 * By hand, as root: `FUZZ_SEED=1 node dist/test/cluster/random-faults.js FAULTS [FOLDER] [KIND]` (20). At random moments one of
 * three machines fails for a while under uploads, payments, takedowns and reads, or its network, disk or clock, an engine, or the
 * way to it. Each kind comes once before one comes again. Then all that was acknowledged is compared. FOLDER: for the logs of the
 * machines. KIND: faults that have it in their name.
 */
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { random, shuffled } from '../property.js'
import { ThreeMachines } from './three-machines.js'

const [faultsText = '20', logs, kind = ''] = process.argv.slice(2)
const faults = Number(faultsText)
/** Longest fault, and longest time without one. */
const [longestMs, quietMs] = [30_000, 6000]

t.setTimeout(faults * 60_000 + 1_200_000)

t.test(`${faults} faults of three machines`, async (t) => {
  const machines = await ThreeMachines.start(t, { hasAll: true })
  const { load } = machines
  if (logs !== undefined) t.teardown(() => machines.writeLogs(logs))
  const kinds = Object.entries(machines.faults).filter(([name]) => name.includes(kind))
  t.comment(`${kinds.length} kinds: ${kinds.map(([name]) => name).join(', ')}`)
  let left = shuffled(kinds)
  let isOver = false
  let shown = 0
  // Also where something that is not well again ends the test.
  t.teardown(() => {
    isOver = true
  })
  const loading = load.run(() => isOver)
  for (let at = 1; at <= faults; at += 1) {
    if (left.length === 0) left = shuffled(kinds)
    const [what, act] = left.pop() ?? ['nothing', pause]
    // Most are short, so that there are many.
    const ms = Math.floor(random() ** 3 * longestMs)
    const time = new Date(systemClock.now()).toISOString()
    t.comment(`${at}: ${time} ${what} for ${ms} ms; accepted ${load.accepted.length}`)
    await act(ms)
    for (const fault of load.faults.slice(shown)) t.comment(`fault: ${fault}`)
    shown = load.faults.length
    // Now and then the next one comes while this one is still felt.
    if (random() < 0.7) await pause(Math.floor(random() * quietMs))
  }
  isOver = true
  await loading
  await machines.compare()
})
