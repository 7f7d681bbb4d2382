/**
 * By hand: `node dist/test/cluster/each-fault.js [FOLDER]`. Each machine of three is killed once and stands still once, and each
 * engine is away once, under load: nothing is lost or paid twice. One minute. FOLDER: for the logs of the machines.
 */
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { shuffled } from '../property.js'
import { ThreeMachines } from './three-machines.js'

const [logs] = process.argv.slice(2)
/** Longer than any time-out of the machines for an engine, and shorter than the time after which a machine is gone. */
const [faultMs, quietMs] = [3000, 500]

t.setTimeout(600_000)

t.test('three machines', async (t) => {
  const machines = await ThreeMachines.start(t)
  if (logs !== undefined) t.teardown(() => machines.writeLogs(logs))
  let isOver = false
  // Also where something that is not well again ends the test.
  t.teardown(() => {
    isOver = true
  })
  const loading = machines.load.run(() => isOver)
  for (const [what, act] of shuffled(Object.entries(machines.faults))) {
    t.comment(what)
    await act(faultMs)
    await pause(quietMs)
  }
  isOver = true
  await loading
  await machines.compare()
})
