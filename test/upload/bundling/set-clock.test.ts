/** The clock of the machine was ahead for a while: what was put off meanwhile does not wait until then. */
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { rigOf, rules } from './bundler-rig.js'

const aheadMs = 600_000

t.test('items that were accepted while the clock was ahead', async (t) => {
  const rig = await rigOf(t, undefined, 100n, { rules: { ...rules, waitMs: 2000 } })
  const { uploads, accept, clock, round } = rig
  clock.now = () => systemClock.now() + aheadMs
  const id = accept('an item')
  clock.now = systemClock.now
  await round()
  t.ok(uploads.find(id)?.bundle, 'they are packed with the next round')
})

t.test('bundles that were put off while the clock was ahead', async (t) => {
  let looks = 0
  const agreedStatus = async (): Promise<object> => {
    looks += 1
    return { kind: 'pending' }
  }
  const { bundles, accept, clock, round } = await rigOf(t, undefined, 100n, {}, { agreedStatus })
  clock.now = () => systemClock.now() + aheadMs
  accept('an item')
  for (let rounds = 0; rounds < 20 && looks === 0; rounds += 1) await round(1000)
  t.match(bundles.open(), [{ state: 'seeded' }])
  clock.now = systemClock.now
  const before = looks
  await round(1000)
  t.ok(looks > before, 'their state is looked at with the next round')
  t.ok(
    (bundles.open()[0]?.dueMs ?? 0) < systemClock.now() + aheadMs / 2,
    'and is put off by the clock of now',
  )
})
