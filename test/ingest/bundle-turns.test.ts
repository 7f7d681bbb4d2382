import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { Following } from '../../src/actor/shared.js'
import { PackedRows } from '../../src/catalog/packed-rows.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import type { ReadingPlace } from '../../src/format/reading-place.js'
import type { ReadParts } from '../../src/ingest/bundle-bytes.js'
import { type OpeningParts, type OpeningRules, openBundle } from '../../src/ingest/bundle-opening.js'
import { bundleAgenda, encodeBundleTask, readBundleTask } from '../../src/ingest/bundle-tasks.js'
import { BundleTurns } from '../../src/ingest/bundle-turns.js'
import type { IndexQueue } from '../../src/ingest/index-queue.js'
import { ingestDefaults } from '../../src/ingest/ingest-parts.js'
import { judgeItems } from '../../src/ingest/item-judge.js'
import { OpeningMarks } from '../../src/ingest/opening-marks.js'
import { Unbundler } from '../../src/ingest/unbundler.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { eventually } from '../eventually.js'
import { fc } from '../property.js'
import { bundleItem, item, type MadeItem, unsigned } from '../source/weave.js'
import { folder } from './house.js'

const always = { kind: 'always' } as const
const rules: OpeningRules = { ...ingestDefaults.unbundle, unbundle: always, index: always }
const never = new AbortController().signal

/** What a bundle is read from, and its items are sent to: the ids of all that were indexed, and where they lie. */
function indexing(heard: (id: Id) => void = () => undefined) {
  const indexed = new Map<Id, number>()
  const write: IndexQueue['write'] = async (compose) => {
    const request = compose()
    const rows = request?.kind === 'index-items' ? new PackedRows(request.items, true) : undefined
    while (rows?.next() === true) {
      indexed.set(idOfBytes(rows.id), rows.place?.rootItemOffset ?? -1)
      heard(idOfBytes(rows.id))
    }
    return undefined
  }
  const index = { refresh: () => undefined, row: () => ({ height: 1 }) }
  const judge: OpeningParts['judge'] = { judge: async (items) => judgeItems(items) }
  return { indexed, judge, queue: { index, write } as unknown as IndexQueue }
}

async function* cut(
  data: Uint8Array,
  parts: ReadParts | undefined,
  step: number,
  each: () => unknown,
): AsyncGenerator<Uint8Array> {
  for (const { start, end } of parts?.(data.length) ?? [{ start: 0, end: data.length }])
    for (let at = start; at < end; at += step) {
      await each()
      yield data.subarray(at, Math.min(at + step, end))
    }
}

/** Reads a bundle in turns that end after so many pieces each; how many turns it took, and what was indexed. */
async function inTurns(
  data: Uint8Array,
  step: number,
  pieces: number,
  entriesAtOnce: number,
  heldMaxBytes: number,
) {
  const { indexed, judge, queue } = indexing()
  let place: ReadingPlace | undefined
  for (let turns = 1; turns < 1000; turns += 1) {
    let left = pieces
    const parts: OpeningParts = {
      queue,
      judge,
      onAdded: () => undefined,
      open: async (_, __, wanted) => ({
        sizeBytes: data.length,
        bytes: cut(data, wanted, step, () => (left -= 1)),
      }),
      turn: { from: place, isOver: (isOnward) => isOnward && left <= 0 },
    }
    const report = { items: 0, bad: 0, nested: 0 }
    const id = idOfBytes(randomBytes(32))
    const end = await openBundle(parts, { ...rules, entriesAtOnce, heldMaxBytes }, id, report, never)
    if (end === undefined) return { turns, indexed }
    if ('refusal' in end) throw new Error(end.refusal.message)
    if (end.place === place) throw new Error('a turn was for nothing')
    place = end.place
  }
  throw new Error('it comes to no end')
}

t.test('a bundle that is read in turns yields what it yields at once', async (t) => {
  const some = (count: number): MadeItem[] => Array.from({ length: count }, () => item(randomBytes(20)))
  const nonsense = { ...item(randomBytes(9)), bytes: randomBytes(300) }
  const inner = bundleItem([...some(5), bundleItem(some(3)), unsigned(bundleItem(some(2)))])
  const empty = { ...item(randomBytes(1)), bytes: new Uint8Array(0) }
  const data = encodeBundle([
    empty,
    ...some(3),
    inner,
    nonsense,
    ...some(6),
    unsigned(inner),
    ...some(4),
    empty,
  ])
  const whole = await inTurns(data, data.length, 99, 1, 2 ** 20)
  t.equal(whole.indexed.size, 3 + 5 + 1 + 3 + 1 + 6 + 4)
  let most = 0
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 50, max: 3000 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 30 }),
      fc.constantFrom(1000, 2 ** 20),
      async (step, pieces, entriesAtOnce, heldMaxBytes) => {
        const { turns, indexed } = await inTurns(data, step, pieces, entriesAtOnce, heldMaxBytes)
        most = Math.max(most, turns)
        t.strictSame(new Map([...indexed].sort()), new Map([...whole.indexed].sort()))
      },
    ),
    { numRuns: 30 },
  )
  t.ok(most > 3)
})

function linesOf(t: Test) {
  const environment = openEnvironment(folder(t))
  t.teardown(() => environment.close())
  const agenda = bundleAgenda(environment, 100)
  return { agenda, marks: new OpeningMarks(environment, agenda) }
}

/** An opener of bundles that are read in pieces of 300 bytes; each piece takes 50 ms. */
function opener(t: Test) {
  const { agenda, marks } = linesOf(t)
  const bundles = new Map<Id, Uint8Array>()
  /** Pieces that were read when an item was indexed. */
  const after = new Map<Id, number>()
  const found = { pieces: 0, begun: new Set<Id>(), onPiece: (): unknown => undefined }
  let ms = 1000
  const clock = { ...systemClock, now: () => ms, monotonic: () => ms }
  const { judge, queue } = indexing((id) => after.set(id, found.pieces))
  const following = new Following()
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const unbundler = new Unbundler(
    {
      agenda,
      marks,
      following,
      meters,
      clock,
      queue,
      judge,
      log: silentLog,
      open: async (id, { parts }) => {
        const data = bundles.get(id) ?? new Uint8Array(0)
        found.begun.add(id)
        const bytes = cut(data, parts, 300, () => {
          found.pieces += 1
          ms += 50
          found.onPiece()
          return new Promise(setImmediate)
        })
        return { sizeBytes: data.length, bytes }
      },
    },
    { ...ingestDefaults.unbundle, unbundle: always, index: always, atOnce: 4 },
  )
  t.teardown(() => unbundler.stop())
  void unbundler.run()
  const post = (owner: string, items: readonly MadeItem[], sizeBytes: number): void => {
    const id = idOfBytes(randomBytes(32))
    bundles.set(id, encodeBundle(items))
    agenda.put(
      [{ key: idBytes(id), value: encodeBundleTask({ owner: Buffer.alloc(32, owner), sizeBytes }) }],
      1,
    )
    unbundler.wake()
  }
  return { agenda, after, found, post }
}

t.test('bundles of many items keep others neither out nor waiting until their end', async (t) => {
  const many = (count: number): MadeItem[] => Array.from({ length: count }, () => item(randomBytes(300)))
  const [first = [], second = [], third = [], inside = [], few = []] = [500, 500, 500, 500, 30].map(many)
  const { agenda, after, found, post } = opener(t)
  const small = item(randomBytes(9))
  let begunAt = 0
  found.onPiece = () => {
    if (found.begun.size < 4 || begunAt > 0) return
    begunAt = found.pieces
    post('s', [small], 1000)
    post('o', few, 2 ** 24)
  }
  for (const [at, items] of [first, second, third].entries()) post(`${at}`, items, 2 ** 24)
  post('n', [bundleItem(inside)], 2 ** 24)
  const fewEnd = (): number => Math.max(...few.map(({ id }) => after.get(id) ?? Number.POSITIVE_INFINITY))
  await eventually('all are opened', () => begunAt > 0 && agenda.count === 0)
  const waited = (after.get(small.id) ?? Number.POSITIVE_INFINITY) - begunAt
  t.ok(waited < 20, `a small one waited for ${waited} pieces`)
  t.ok(fewEnd() - begunAt < 1000, `another one waited for ${fewEnd() - begunAt} pieces`)
  const wanted = [...first, ...second, ...third, ...inside]
  t.equal(wanted.filter(({ id }) => after.has(id)).length, wanted.length)
  const whole = wanted.reduce((sum, one) => sum + one.bytes.length + 64, 0) / 300
  t.ok(found.pieces < 1.4 * whole, `${found.pieces} pieces are read of ${Math.ceil(whole)}`)
})

t.test('who has used time stands behind others for a while', (t) => {
  const { agenda, marks } = linesOf(t)
  let ms = 1000
  const clock = { ...systemClock, now: () => ms, monotonic: () => ms }
  const turns = new BundleTurns(agenda, marks, clock, { atOnce: 2, turnMs: 1000, stuckMs: 5000 })
  const put = (key: string): void => {
    const value = encodeBundleTask({ owner: Buffer.alloc(32, key.slice(0, 1)) })
    agenda.put([{ key: Buffer.alloc(32, key), value }], 1)
  }
  for (const key of ['a1', 'a2', 'b1', 'b2']) put(key)
  agenda.line(ms)
  const taken = new Set<string>()
  const next = (): string => {
    const task = turns.next([], (key) => taken.has(key))
    if (task === undefined) return ''
    taken.add(Buffer.from(task.key).toString('hex'))
    return Buffer.from(task.key).toString('latin1', 0, 2)
  }
  const task = agenda.next('first', new Set())
  if (task === undefined) throw new Error('none')
  const open = turns.opened(task, [])
  t.equal(open.isExtra, false)
  ms += 2000
  turns.closed(open)
  t.equal(turns.isOver(open, 4, 1000), false, 'nobody waits')
  t.equal(turns.isOver(open, 3, 1000), true)
  t.equal(turns.isOver(open, 3, 2500), false, 'its bytes came late')
  t.equal(turns.isOver(open, 3, undefined), false)
  t.same([next(), next(), next()], ['b1', 'b2', 'a1'])
  taken.clear()
  ms += 2001
  t.same(
    [next(), next(), next()].map((key) => key.slice(0, 1)),
    ['b', 'a', 'b'],
    'and then has its turns again',
  )
  t.end()
})

t.test('one that was stuck is begun though others come without end, and others fail', (t) => {
  const { agenda, marks } = linesOf(t)
  const clock = { ...systemClock, now: () => 1000, monotonic: () => 1000 }
  const turns = new BundleTurns(agenda, marks, clock, { atOnce: 4, turnMs: 1000, stuckMs: 5000 })
  const put = (key: string): void => {
    const value = encodeBundleTask({ owner: Buffer.alloc(32, key) })
    agenda.put([{ key: Buffer.alloc(32, key), value }], 1)
  }
  for (let at = 0; at < 20; at += 1) {
    put(`bad ${at}`)
    const failed = agenda.find(Buffer.alloc(32, `bad ${at}`))
    if (failed !== undefined) agenda.later(failed, 1000)
  }
  put('stuck')
  const stuck = agenda.find(Buffer.alloc(32, 'stuck'))
  if (stuck === undefined) throw new Error('none')
  agenda.back(stuck, encodeBundleTask({ ...readBundleTask(stuck.value), isStuck: true }))
  const taken = new Set<string>()
  const begun = Array.from({ length: 80 }, (_, at) => {
    put(`new ${at}`)
    agenda.line(1000)
    const task = turns.next([], (key) => taken.has(key))
    taken.add(Buffer.from(task?.key ?? '').toString('hex'))
    return Buffer.from(task?.key ?? '').toString('latin1', 0, 5)
  })
  t.equal(begun.indexOf('bad 0'), 16, String(begun))
  t.equal(begun.indexOf('stuck'), 33, 'after one that failed')
  t.equal(begun.lastIndexOf('stuck'), 33, 'and once')
  t.end()
})

t.test('what is on record of a bundle is read again, also of earlier releases', (t) => {
  const owner = Buffer.alloc(32, 5)
  const place = { count: 9, index: 4, offset: 1000 }
  for (const task of [{ owner, missing: 5 }, { owner, sizeBytes: 7, place, isStuck: true }, { owner }])
    t.match(readBundleTask(encodeBundleTask(task)), task)
  const missing = Buffer.alloc(8)
  missing.writeDoubleBE(77)
  t.match(readBundleTask(Buffer.concat([owner, missing])), { owner, missing: 77, place: undefined })
  t.match(readBundleTask(owner), { owner, missing: undefined })
  t.same(readBundleTask(new Uint8Array(0)), {})
  t.end()
})
