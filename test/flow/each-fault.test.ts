/**
 * Each machine of three is killed once and stands still once, and each engine is away once, under load: nothing is lost or paid
 * twice. `node dist/test/flow/each-fault.test.js FOLDER` writes the logs of the machines there.
 */
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { hasRedis } from '../admission/redis-server.js'
import { ThreeMachines } from '../cluster/three-machines.js'
import { postgresFolder } from '../engines/postgres-server.js'
import { hasRadosgw } from '../engines/radosgw.js'
import { shuffled } from '../property.js'

const [logs] = process.argv.slice(2)
const hasAll = postgresFolder !== undefined && hasRadosgw && hasRedis
const skip = hasAll || process.env.CI === 'true' ? false : 'PostgreSQL, radosgw or Redis is not installed'
/** Longer than any time-out of the machines for an engine, and shorter than the time after which a machine is gone. */
const [faultMs, quietMs] = [3000, 500]

t.test('three machines', { skip }, async (t) => {
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
