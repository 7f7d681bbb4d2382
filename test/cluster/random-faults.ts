/**
 * By hand: `FUZZ_SEED=1 node dist/test/cluster/random-faults.js FAULTS [FOLDER]` (20). At random moments one of three machines is
 * killed or stands still, or an engine does, under uploads, payments, takedowns and reads; then all that was acknowledged is
 * compared. FOLDER: for the logs of the machines.
 */
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { pick, random } from '../property.js'
import { ThreeMachines } from './three-machines.js'

const [faultsText = '20', logs] = process.argv.slice(2)
const faults = Number(faultsText)
/** Longest fault, and longest time without one. */
const [longestMs, quietMs] = [20_000, 6000]

t.setTimeout(faults * 60_000 + 1_200_000)

t.test(`${faults} faults of three machines`, async (t) => {
  const machines = await ThreeMachines.start(t)
  const { load } = machines
  if (logs !== undefined) t.teardown(() => machines.writeLogs(logs))
  let isOver = false
  const loading = load.run(() => isOver)
  for (let at = 1; at <= faults; at += 1) {
    const [what, act] = pick(Object.entries(machines.faults))
    const ms = Math.floor(random() * longestMs)
    t.comment(`${at}: ${what} for ${ms} ms; accepted ${load.accepted.length}, faults ${load.faults.length}`)
    await act(ms)
    // Now and then the next one comes while this one is still felt.
    if (random() < 0.7) await pause(Math.floor(random() * quietMs))
  }
  isOver = true
  await loading
  await machines.compare()
})
