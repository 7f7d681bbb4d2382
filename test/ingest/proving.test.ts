import t from 'tap'
import type { Id } from '../../src/format/id.js'
import type { ProofVerdict, Undecided } from '../../src/ingest/evidence.js'
import { priorities } from '../../src/ingest/proof-records.js'
import { idOf, type ProvingRig, provingRig } from './proving-rig.js'

const proven: ProofVerdict = { kind: 'proven', learned: {} }
const denied = (because: Undecided['because']): ProofVerdict => ({
  kind: 'undecided',
  reason: 'test',
  ...(because === undefined ? {} : { because }),
})

/** Contents with these numbers come; `root` is what a gateway says of them. */
function come(
  rig: ProvingRig,
  from: number,
  count: number,
  root?: Id,
  priority: number = priorities.requested,
): void {
  for (let at = from; at < from + count; at += 1) {
    rig.verifier.note(idOf(at), root === undefined ? {} : { rootId: root }, priority)
    rig.put(idOf(at))
  }
  rig.verifier.commit()
}

const minute = 60_000
const hour = 60 * minute

t.test('one look proves all contents of a bundle', async (t) => {
  const rig = provingRig(t, { judge: () => proven })
  const root = idOf(1000)
  come(rig, 0, 200, root)
  await rig.clock.turn(3000)
  t.equal(rig.requested.length, 1)
  t.equal(rig.requested[0]?.count, 200)
  t.equal(rig.unsettled.size, 0)
  t.equal(rig.agenda.count, 0)
  t.equal(rig.known.get(idOf(5))?.height, 7)
  t.equal(rig.clock.waiting, 0, 'nothing wakes up for nothing')
})

t.test('what is recorded while its root is looked at keeps its hint', async (t) => {
  const root = idOf(1000)
  const late = idOf(1)
  const rig = provingRig(t, {
    judge(_, rootId) {
      if (!rig.known.has(late)) {
        rig.put(late)
        rig.verifier.recorded(late, { rootId: root }, priorities.requested)
      }
      return rootId === root ? proven : denied('absent')
    },
  })
  rig.verifier.note(late, { rootId: root }, priorities.requested)
  come(rig, 0, 1, root)
  await rig.clock.turn(10_000)
  t.equal(rig.known.get(late)?.verified, true)
  t.equal(rig.agenda.count, 0)
})

t.test('what was noted, and never recorded, waits for nothing', async (t) => {
  const root = idOf(1000)
  const rig = provingRig(t, { judge: () => proven })
  rig.verifier.note(idOf(1), { rootId: root }, priorities.requested)
  come(rig, 0, 1, root)
  await rig.clock.turn(10_000)
  t.equal(rig.agenda.count, 0)
})

t.test('a root that nodes deny is asked for once for all of its contents, less and less often', async (t) => {
  const rig = provingRig(t, { judge: () => denied('absent') })
  const root = idOf(1000)
  for (let at = 0; at < 50; at += 1) {
    come(rig, at, 1, root)
    await rig.clock.turn(1000)
  }
  t.ok(rig.requested.length <= 6, `${rig.requested.length} questions while 50 contents came`)
  await rig.clock.turn(24 * hour)
  t.ok(rig.requested.length <= 18, `${rig.requested.length} questions in a day`)
  const times = rig.requested.map(({ atMs }) => atMs)
  for (const [at, time] of times.entries()) {
    const before = times[at - 1]
    if (before !== undefined) t.ok(time - before >= Math.min(2000 * 2 ** (at - 1), 6 * hour))
  }
})

t.test('a content without a known root is asked for once, and then waits for the index', async (t) => {
  const rig = provingRig(t, { judge: (_, rootId) => (rootId === idOf(1000) ? proven : denied('absent')) })
  come(rig, 0, 30)
  await rig.clock.turn(100_000)
  t.equal(rig.requested.length, 30)
  for (let at = 0; at < 30; at += 1) {
    const known = rig.known.get(idOf(at))
    if (known !== undefined) rig.known.set(idOf(at), { ...known, place: { rootId: idOf(1000) } as never })
  }
  await rig.clock.turn(10_000)
  t.equal(rig.requested.length, 30, 'nothing is looked up before a block')
  rig.block()
  await rig.clock.turn(10_000)
  t.equal(rig.requested.length, 31)
  t.equal(rig.unsettled.size, 0)
})

t.test('a false hint is forgotten, and its content waits like one without', async (t) => {
  const rig = provingRig(t, {
    judge: ({ known }, rootId) => (rootId === known.id ? denied('absent') : denied('elsewhere')),
  })
  come(rig, 0, 20, idOf(1000))
  await rig.clock.turn(100_000)
  t.equal(rig.requested.filter(({ rootId }) => rootId === idOf(1000)).length, 1)
  t.equal(rig.requested.length, 21)
})

t.test('named content has its turn beside any number of others', async (t) => {
  const rig = provingRig(t, { judge: () => denied('absent') })
  come(rig, 0, 3000)
  await rig.clock.turn(5000)
  come(rig, 5000, 1, undefined, priorities.named)
  const before = rig.requested.length
  await rig.clock.turn(1000)
  const place = rig.requested.findIndex(({ rootId }) => rootId === idOf(5000))
  t.ok(place >= 0 && place - before < 12, `it was the ${place - before}. of those`)
})

t.test('while no node answers they are asked now and then, and not for each root that comes', async (t) => {
  let isAway = true
  const rig = provingRig(t, { judge: () => (isAway ? denied('away') : denied('absent')) })
  come(rig, 0, 40)
  await rig.clock.turn(10_000)
  const first = rig.requested.length
  t.ok(first <= 12, `${first} questions in ten seconds`)
  come(rig, 40, 40)
  await rig.clock.turn(5 * minute)
  t.ok(rig.requested.length - first <= 14, `${rig.requested.length - first} in five minutes`)
  isAway = false
  await rig.clock.turn(2 * minute)
  const roots = new Set(rig.requested.map(({ rootId }) => rootId))
  t.equal(roots.size, 80, 'all have their turn when a node answers')
})

t.test('what was denied is remembered over a restart, with the hints', async (t) => {
  const nodes = { judge: (): ProofVerdict => denied('absent') }
  let rig = provingRig(t, nodes)
  const root = idOf(1000)
  come(rig, 0, 10, root)
  await rig.clock.turn(5 * minute)
  const before = rig.requested.length
  rig = await rig.restarted()
  rig.verifier.start()
  await rig.clock.turn(minute)
  t.ok(rig.requested.length - before <= 1, 'no root is asked for sooner')
  nodes.judge = () => proven
  await rig.clock.turn(hour)
  t.equal(rig.unsettled.size, 0)
  t.ok(rig.requested.slice(before).every(({ rootId }) => rootId === root))
})

t.test(
  'a process that is killed before the record is written leaves nothing behind, and after it nothing out',
  async (t) => {
    let rig = provingRig(t, { judge: () => proven })
    // Noted, and never recorded.
    rig.verifier.note(idOf(1), { rootId: idOf(1000) }, priorities.requested)
    rig.verifier.commit()
    // Recorded, and never noted: the disk refused, or an earlier version wrote it.
    rig.put(idOf(2))
    rig = await rig.restarted()
    rig.verifier.start()
    await rig.clock.turn(minute)
    t.equal(rig.agenda.count, 0)
    t.equal(rig.unsettled.size, 0)
    t.same(
      rig.requested.map(({ rootId }) => rootId),
      [idOf(2)],
    )
  },
)

t.test('a long list is read in a time that does not keep what can be proven waiting for a day', async (t) => {
  const rig = provingRig(
    t,
    { judge: ({ known }) => (known.height === undefined ? denied('absent') : proven) },
    { waitingMax: 10 },
  )
  const ids = Array.from({ length: 20_000 }, (_, at) => idOf(at))
  for (const id of ids) rig.put(id)
  const last = rig.unsettled.list(undefined, ids.length).at(-1) ?? idOf(0)
  const known = rig.known.get(last)
  if (known !== undefined) rig.known.set(last, { ...known, height: 5 })
  rig.verifier.start()
  // A million ids have fifty times as long.
  await rig.clock.turn(10 * minute)
  t.notOk(rig.unsettled.has(last), 'it is proven')
})

t.test('what was displaced is asked for again when the index has it, and nothing else is', async (t) => {
  const rig = provingRig(
    t,
    { judge: ({ known }) => (known.height === undefined ? denied('absent') : proven) },
    { waitingMax: 100 },
  )
  rig.verifier.start()
  for (let at = 0; at < 400; at += 10) {
    come(rig, at, 10)
    await rig.clock.turn(minute)
  }
  for (const id of [idOf(3), idOf(7)]) {
    const known = rig.known.get(id)
    if (known !== undefined) rig.known.set(id, { ...known, height: 5 })
  }
  t.notOk(rig.agenda.has(idOf(3)) && rig.agenda.has(idOf(7)), 'others came')
  const before = rig.requested.length
  await rig.clock.turn(2 * hour)
  t.notOk(rig.unsettled.has(idOf(3)) || rig.unsettled.has(idOf(7)), 'these can be proven now')
  const times = new Map<Id, number>()
  for (const { rootId, atMs } of rig.requested.slice(before)) {
    if (atMs - (times.get(rootId) ?? 0) < 2 * minute) t.fail('asked within the time of a no')
    times.set(rootId, atMs)
  }
  t.ok(times.size <= 102, `${times.size} of 400 are looked at`)
})

t.test('proofs stay within their share, however much waits', async (t) => {
  const rig = provingRig(t, { judge: () => denied('absent') }, { waitingMax: 4000 })
  come(rig, 0, 6000)
  t.ok(rig.agenda.count <= 4000, 'what waits is bounded')
  rig.verifier.start()
  const before = rig.spentMs()
  for (let second = 0; second < 300; second += 1) {
    rig.work(100)
    await rig.clock.turn(1000)
  }
  const spent = rig.spentMs() - before
  t.ok(spent <= 300 * (20 + 100 * 0.05) + 250 + 20, `${spent} ms in five minutes`)
  t.ok(rig.requested.length <= 300 * 20 + 20, `${rig.requested.length} questions`)
})

t.test(
  'guesses that find nothing become rare, and as frequent as before where they find something',
  async (t) => {
    let isFound = false
    const rig = provingRig(t, { judge: () => (isFound ? proven : denied('absent')) })
    come(rig, 0, 3000)
    rig.verifier.start()
    const looksIn = async (seconds: number): Promise<number> => {
      const before = rig.requested.length
      for (let second = 0; second < seconds; second += 1) {
        rig.work(100)
        await rig.clock.turn(1000)
      }
      return rig.requested.length - before
    }
    const first = await looksIn(60)
    t.ok(first > 60 && first < 300, `${first} questions in the first minute`)
    const later = await looksIn(300)
    t.ok(later >= 280 && later < 500, `${later} in five more`)
    isFound = true
    await looksIn(60)
    const soon = await looksIn(60)
    t.ok(soon > 60 * 15, `${soon} in the second minute in which transactions are found`)
  },
)

t.test('what the index gets to know is not looked for among guesses', async (t) => {
  const rig = provingRig(t, {
    judge: ({ known }) => (known.height === undefined ? denied('absent') : proven),
  })
  come(rig, 0, 5000)
  rig.verifier.start()
  await rig.clock.turn(minute)
  for (let at = 100; at < 5000; at += 10) {
    const known = rig.known.get(idOf(at))
    if (known !== undefined) rig.known.set(idOf(at), { ...known, height: 7 })
  }
  rig.block()
  for (let second = 0; second < 120; second += 1) {
    rig.work(200)
    await rig.clock.turn(1000)
  }
  const open = [...rig.known.values()].filter(({ height, verified }) => height !== undefined && !verified)
  t.equal(open.length, 0, 'all of them are proven two minutes later')
})

t.test(
  'in a day all that becomes provable is proven, and nobody is asked twice within the time of a no',
  async (t) => {
    const day = 24 * hour
    const rig = provingRig(
      t,
      {
        judge({ known }, rootId) {
          if (rootId === known.id)
            return rig.clock.now() >= start + loneFrom(known.id) ? proven : denied('absent')
          return rig.clock.now() >= start + ledFrom(rootId) ? proven : denied('absent')
        },
      },
      { attemptsMax: 25 },
    )
    const start = rig.clock.now()
    const numberOf = new Map<Id, number>()
    const number = (id: Id): number => numberOf.get(id) ?? 0
    // A third never, the others some time in the first half of the day.
    const from = (n: number): number =>
      n % 3 === 0 ? Number.POSITIVE_INFINITY : ((n * 7919) % 1000) * 43_200
    const ledFrom = (id: Id): number => from(number(id))
    // Transactions that nobody named come soon after they were seen, or never.
    const loneFrom = (id: Id): number => from(number(id)) / 4
    for (let root = 0; root < 150; root += 1) {
      numberOf.set(idOf(100_000 + root), root)
      come(rig, root * 10, 10, idOf(100_000 + root))
    }
    for (let lone = 0; lone < 600; lone += 1) {
      numberOf.set(idOf(50_000 + lone), lone)
      come(rig, 50_000 + lone, 1)
    }
    rig.verifier.start()
    for (let block = 0; block < 24 * 30; block += 1) {
      rig.block()
      await rig.clock.turn(2 * minute)
    }
    const open = rig.unsettled
      .list(undefined, rig.unsettled.size)
      .filter((id) => rig.known.get(id)?.verified !== true)
    const provable = (id: Id): boolean => {
      const lone = numberOf.get(id)
      return lone === undefined ? false : loneFrom(id) < day
    }
    t.same(open.filter(provable), [], 'transactions')
    const verified = [...rig.known.values()].filter((one) => one.verified).length
    t.equal(verified, 100 * 10 + 400, 'items of roots')
    const last = new Map<Id, { atMs: number; count: number }>()
    for (const { rootId, atMs } of rig.requested) {
      const before = last.get(rootId)
      const count = (before?.count ?? 0) + 1
      if (before !== undefined) {
        const isLed = number(rootId) < 150 && rootId === idOf(100_000 + number(rootId))
        const rest = isLed
          ? Math.min(2000 * 2 ** (count - 2), 6 * hour)
          : Math.min(2 * minute * 4 ** (count - 2), day)
        if (atMs - before.atMs < rest) t.fail(`asked again after ${atMs - before.atMs} of ${rest} ms`)
      }
      last.set(rootId, { atMs, count })
    }
    t.ok(rig.spentMs() < 86_400 * 20, 'and all of it within the budget')
    t.comment(
      `${rig.requested.length} questions, ${rig.spentMs().toFixed(0)} ms of processor time in the day`,
    )
  },
)
