/**
 * By hand: `node dist/test/cluster/two-versions.js FOLDER [ROUNDS] [LOGS]` (2). FOLDER: another release, built. Three machines of
 * one cluster go from that release to this one and back, one after the other, stopped or killed, under uploads, payments,
 * takedowns and reads. Then all that was acknowledged is compared. LOGS: a folder for the logs of the machines.
 */
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { otherRelease } from './lasting-machine.js'
import { ThreeMachines } from './three-machines.js'

const [folder = '', roundsText = '2', logs] = process.argv.slice(2)
const rounds = Number(roundsText)
/** Between two machines: uploads become permanent meanwhile. */
const betweenMs = 15_000

t.setTimeout(rounds * 600_000 + 1_200_000)

t.test('machines go from one release to another and back', async (t) => {
  const machines = await ThreeMachines.start(t, { under: otherRelease(folder) })
  const { load } = machines
  if (logs !== undefined) t.teardown(() => machines.writeLogs(logs))
  let isOver = false
  t.teardown(() => {
    isOver = true
  })
  const loading = load.run(() => isOver)
  let shown = 0
  const show = (what: string): void => {
    t.comment(`${new Date(systemClock.now()).toISOString()} ${what}; accepted ${load.accepted.length}`)
    for (const fault of load.faults.slice(shown)) t.comment(`fault: ${fault}`)
    shown = load.faults.length
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const under of [[], otherRelease(folder)]) {
      for (const machine of machines.machines) {
        await pause(betweenMs)
        show(`${machine.name} goes to ${under.length === 0 ? 'this release' : 'the other one'}`)
        // The second round as after a power cut.
        if (round % 2 === 0) t.equal(await machine.running.stop(), 0)
        else await machine.kill()
        machine.under = under
        await machine.start()
      }
    }
  }
  await pause(betweenMs)
  for (const machine of machines.machines) {
    show(`${machine.name} goes to this release for good`)
    t.equal(await machine.running.stop(), 0)
    machine.under = []
    await machine.start()
  }
  isOver = true
  await loading
  show('all is compared')
  await machines.compare()
})
