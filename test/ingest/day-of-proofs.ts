/**
 * By hand, because it takes minutes to an hour: `node dist/test/ingest/day-of-proofs.js [CONTENTS] [WAITING]`. Two days on a
 * turned clock: on the first one readers ask for CONTENTS (1,000,000) that nobody can ever prove, and for 10,000 that can be
 * proven later. WAITING (200,000): contents that may wait for a proof at once.
 */
import t from 'tap'
import type { Id } from '../../src/format/id.js'
import type { ProofVerdict } from '../../src/ingest/evidence.js'
import { priorities } from '../../src/ingest/proof-records.js'
import { sourceDefaults } from '../../src/source/source-defaults.js'
import { idOf, provingRig } from './proving-rig.js'

const hour = 3_600_000
const day = 24 * hour
const stepMs = 60_000
const steps = day / stepMs
const never = Number.POSITIVE_INFINITY
/** Processor time of everything else in a second, in milliseconds. */
const elseMs = 300

const proven: ProofVerdict = { kind: 'proven', learned: {} }
const absent: ProofVerdict = { kind: 'undecided', reason: 'test', because: 'absent' }

/** Contents with a named root, ten of each; and transactions that nobody names. */
const [rootCount, loneCount] = [500, 5000]
const [rootsFrom, itemsFrom, lonesFrom, hopelessFrom] = [1_000_000, 2_000_000, 3_000_000, 10_000_000]

t.setTimeout(4 * hour)

t.test('days with contents that cannot be proven', async (t) => {
  const hopeless = Number(process.argv[2] ?? 1_000_000)
  const waitingMax = Number(process.argv[3] ?? 200_000)
  const fromMs = new Map<Id, number>()
  const numbered = new Set<Id>()
  const rig = provingRig(
    t,
    { judge: (_, rootId) => (rig.clock.now() >= (fromMs.get(rootId) ?? never) ? proven : absent) },
    { waitingMax, attemptsMax: 25 },
  )
  const start = rig.clock.now()
  const come = (number: number, rootId?: Id): void => {
    rig.verifier.note(idOf(number), rootId === undefined ? {} : { rootId }, priorities.requested)
    rig.put(idOf(number))
  }
  for (let n = 0; n < rootCount; n += 1) numbered.add(idOf(rootsFrom + n))
  for (let n = 0; n < rootCount; n += 1)
    fromMs.set(idOf(rootsFrom + n), start + (n % 10 === 0 ? never : ((n * 7919) % 1000) * (hour / 50)))
  for (let n = 0; n < loneCount; n += 1)
    fromMs.set(idOf(lonesFrom + n), start + ((n * 7919) % 1000) * (hour / 50))
  rig.verifier.start()
  const shareOf = (count: number, step: number): [number, number] => [
    Math.floor((count * step) / steps),
    Math.floor((count * (step + 1)) / steps),
  ]
  for (let step = 0; step < 2 * steps; step += 1) {
    const isFirstDay = step < steps
    const each = (count: number, act: (at: number) => void): void => {
      const [from, to] = shareOf(count, step)
      for (let at = from; isFirstDay && at < to; at += 1) act(at)
    }
    each(hopeless, (at) => come(hopelessFrom + at))
    each(rootCount * 10, (at) => come(itemsFrom + at, idOf(rootsFrom + Math.floor(at / 10))))
    each(loneCount, (at) => come(lonesFrom + at))
    rig.verifier.commit()
    if (step % 2 === 0) {
      // What is in a block is in the index.
      for (const [id, ms] of fromMs) {
        const known = rig.known.get(id)
        if (known?.height === undefined && known !== undefined && rig.clock.now() >= ms)
          rig.known.set(id, { ...known, height: 7 })
      }
      rig.block()
    }
    rig.work((elseMs * stepMs) / 1000)
    await rig.clock.turn(stepMs)
    if (step % 60 === 59)
      t.comment(
        `hour ${(step + 1) / 60}: ${rig.requested.length} questions, ${rig.agenda.count} wait, ${rig.unsettled.size} listed, ` +
          `${(rig.spentMs() / (((step + 1) * stepMs) / 1000)).toFixed(1)} ms a second`,
      )
  }
  const open = (from: number, count: number, isProvable: (at: number) => boolean): number[] =>
    Array.from({ length: count }, (_, at) => at).filter(
      (at) => isProvable(at) && rig.known.get(idOf(from + at))?.verified !== true,
    )
  t.same(open(itemsFrom, rootCount * 10, (at) => Math.floor(at / 10) % 10 !== 0).length, 0, 'items')
  t.same(open(lonesFrom, loneCount, () => true).length, 0, 'transactions')
  const last = new Map<Id, number>()
  let again = 0
  for (const { rootId, atMs } of rig.requested) {
    const before = last.get(rootId)
    const leastMs = numbered.has(rootId) ? sourceDefaults.verifier.retryMs : sourceDefaults.verifier.loneMs
    // The index has heard of the others since.
    const isNews = atMs >= (fromMs.get(rootId) ?? never)
    if (!isNews && before !== undefined && atMs - before < leastMs) again += 1
    last.set(rootId, atMs)
  }
  t.equal(again, 0, 'nobody is asked again within the time of a no')
  const seconds = (2 * day) / 1000
  t.ok(rig.spentMs() / seconds <= elseMs * 0.05 + 20, 'the budget')
  t.ok(rig.requested.length <= 20 * seconds, 'requests')
})
