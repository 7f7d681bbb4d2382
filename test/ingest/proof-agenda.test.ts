import t, { type Test } from 'tap'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { type AgendaMember, ProofAgenda } from '../../src/ingest/proof-agenda.js'
import { type Lane, lanes, priorities } from '../../src/ingest/proof-records.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { fc } from '../property.js'
import { folder } from './house.js'

const idOf = (number: number): Id => {
  const bytes = Buffer.alloc(32, 7)
  bytes.writeUInt32BE(number, 0)
  return idOfBytes(bytes)
}
const none: ReadonlySet<Id> = new Set()
const all = Object.values(lanes)

function agendaOf(t: Test, max = 1000, path = folder(t)) {
  const environment = openEnvironment(path)
  t.teardown(() => environment.close())
  return { environment, path, agenda: new ProofAgenda(environment, max) }
}

function wish(id: number, root = id, priority: number = priorities.requested): AgendaMember {
  const rootId = idOf(root)
  return { id: idOf(id), rootId, hints: root === id ? {} : { rootId }, priority }
}

const add = (agenda: ProofAgenda, wishes: readonly AgendaMember[], dueMs = 0): void =>
  agenda.add(wishes, () => dueMs, 0)
const next = (agenda: ProofAgenda, nowMs: number): (Id | undefined)[] =>
  all.map((lane) => agenda.due(lane, nowMs, none, 1)[0])
const outcome = { gone: [], moved: [], dueMs: 0, attempts: 0 }

t.test(
  'contents of one root wait together, each lane has its own, and none is due before its time',
  async (t) => {
    const { agenda } = agendaOf(t)
    add(agenda, [wish(1, 9), wish(2, 9), wish(3), wish(4, 4, priorities.named)], 100)
    t.same(next(agenda, 99), [undefined, undefined, undefined, undefined, undefined])
    t.same(next(agenda, 100), [idOf(4), idOf(9), idOf(3), undefined, undefined])
    t.same(
      agenda.members(idOf(9), 10).map(({ id }) => id),
      [idOf(1), idOf(2)],
    )
    t.equal(agenda.nextMs(), 100)
    agenda.recordLooks([{ ...outcome, rootId: idOf(9), gone: [idOf(1)], dueMs: 500, attempts: 1 }], 100)
    t.same(next(agenda, 499)[lanes.ledAgain], undefined)
    t.same(next(agenda, 500), [idOf(4), undefined, idOf(3), idOf(9), undefined])
    agenda.recordLooks([{ ...outcome, rootId: idOf(9), gone: [idOf(2)], dueMs: 900, attempts: 2 }], 500)
    t.equal(agenda.root(idOf(9)), undefined, 'it goes with its last content')
    t.equal(agenda.count, 2)
  },
)

t.test('a denied root is not due sooner because more contents name it', async (t) => {
  const { agenda } = agendaOf(t)
  add(agenda, [wish(1, 9)])
  agenda.recordLooks([{ ...outcome, rootId: idOf(9), dueMs: 1000, attempts: 1 }], 0)
  add(agenda, [wish(2, 9), wish(9, 9, priorities.named)], 10)
  t.same(next(agenda, 999), [undefined, undefined, undefined, undefined, undefined])
  t.equal(agenda.members(idOf(9), 10).length, 3)
})

t.test('what the index tells makes a root due, once', async (t) => {
  const { agenda } = agendaOf(t)
  add(agenda, [wish(1, 9)])
  agenda.recordLooks([{ ...outcome, rootId: idOf(9), dueMs: 1000, attempts: 1 }], 0)
  agenda.indexed([idOf(9), idOf(5)], 10)
  t.same(next(agenda, 10)[lanes.ledAgain], idOf(9))
  agenda.recordLooks([{ ...outcome, rootId: idOf(9), dueMs: 5000, attempts: 2 }], 20)
  agenda.indexed([idOf(9)], 30)
  t.same(next(agenda, 4999)[lanes.ledAgain], undefined)
})

t.test('what the index has is no guess any more, looked at or not', async (t) => {
  const { agenda } = agendaOf(t)
  add(agenda, [wish(1), wish(2), { ...wish(3), isIndexed: true }], 500)
  agenda.recordLooks([{ ...outcome, rootId: idOf(2), dueMs: 1000, attempts: 1 }], 0)
  t.same(agenda.due(lanes.lone, 500, none, 9), [idOf(1)])
  agenda.indexed([idOf(1), idOf(2)], 10)
  t.same(agenda.due(lanes.led, 500, none, 9), [idOf(1), idOf(3)])
  t.same(agenda.due(lanes.ledAgain, 10, none, 9), [idOf(2)])
  agenda.recordLooks([{ ...outcome, rootId: idOf(1), dueMs: 2000, attempts: 1 }], 0)
  t.same(agenda.due(lanes.ledAgain, 2000, none, 9), [idOf(2), idOf(1)])
})

t.test('a better hint moves a content, and hints outlive the process', async (t) => {
  const { agenda, environment, path } = agendaOf(t)
  add(agenda, [wish(1)])
  const hints = { rootId: idOf(9), path: [idOf(9), idOf(8)], itemOffset: 96, itemSize: 300 }
  add(agenda, [{ id: idOf(1), rootId: idOf(9), hints, priority: priorities.listed }])
  t.equal(agenda.count, 1)
  t.equal(agenda.root(idOf(1)), undefined)
  agenda.recordLooks([{ ...outcome, rootId: idOf(9), dueMs: 700, attempts: 3 }], 0)
  await environment.close()
  const { agenda: again } = agendaOf(t, 1000, path)
  t.same(again.members(idOf(9), 10), [
    { id: idOf(1), rootId: idOf(9), hints, priority: priorities.requested },
  ])
  t.match(again.root(idOf(9)), { attempts: 3, dueMs: 700, isLed: true })
})

t.test('a full agenda drops what is looked at last, and never what nobody has looked at', async (t) => {
  const { agenda } = agendaOf(t, 4)
  add(agenda, [wish(1), wish(2), wish(3, 9), wish(4, 9)])
  add(agenda, [wish(5)])
  t.notOk(agenda.has(idOf(5)), 'the catalog lists it')
  agenda.recordLooks([{ ...outcome, rootId: idOf(1), dueMs: 1000, attempts: 1 }], 0)
  agenda.recordLooks([{ ...outcome, rootId: idOf(2), dueMs: 2000, attempts: 1 }], 0)
  add(agenda, [wish(6)])
  t.ok(agenda.has(idOf(6)))
  t.notOk(agenda.has(idOf(2)))
  t.ok(agenda.has(idOf(1)))
  t.equal(agenda.count, 4)
})

t.test('ids without a root, however many, leave no content out whose root is named', async (t) => {
  const { agenda } = agendaOf(t, 4)
  add(agenda, [wish(1), wish(2), wish(3), wish(4)], 10)
  add(agenda, [wish(5, 9), wish(6, 6, priorities.named)], 20)
  t.ok(agenda.has(idOf(5)))
  t.ok(agenda.has(idOf(6)))
  t.equal(agenda.count, 4)
  t.same(next(agenda, 20).slice(0, 3), [idOf(6), idOf(9), next(agenda, 20)[lanes.lone]])
  add(agenda, [wish(7)])
  t.notOk(agenda.has(idOf(7)))
})

t.test(
  'guesses that wait to be looked at displace no root that was named, and give way to one',
  async (t) => {
    const { agenda } = agendaOf(t, 4)
    add(agenda, [wish(1, 9), wish(2, 9), wish(3), wish(4)])
    agenda.recordLooks([{ ...outcome, rootId: idOf(9), dueMs: 1000, attempts: 1 }], 0)
    add(agenda, [wish(5)], 20)
    t.notOk(agenda.has(idOf(5)), 'the catalog lists it')
    add(agenda, [wish(6, 8)], 20)
    t.same(
      [1, 2, 6].map((id) => agenda.has(idOf(id))),
      [true, true, true],
    )
    t.equal(agenda.count, 4)
  },
)

t.test('after the clock was set back nothing waits for years', async (t) => {
  const { agenda } = agendaOf(t)
  const year = 365 * 86_400_000
  add(agenda, [wish(1)], 2 * year)
  t.same(next(agenda, year)[lanes.lone], idOf(1))
})

const step = fc.oneof(
  fc.record({ add: fc.integer({ min: 0, max: 9 }), root: fc.integer({ min: 0, max: 9 }), due: fc.nat(50) }),
  fc.record({ gone: fc.integer({ min: 0, max: 9 }) }),
  fc.record({ later: fc.integer({ min: 0, max: 9 }), due: fc.nat(100) }),
  fc.record({ move: fc.integer({ min: 0, max: 9 }), to: fc.integer({ min: 0, max: 9 }) }),
)

t.test(
  'whatever happens, each content waits for one root, and each root that is waited for is due once',
  async (t) => {
    const { agenda, environment } = agendaOf(t)
    const clear = (): void => {
      for (let id = 0; id < 10; id += 1)
        for (let root = 0; root < 10; root += 1)
          agenda.recordLooks(
            [
              {
                ...outcome,
                rootId: idOf(root),
                gone: agenda.members(idOf(root), 99).map((one) => one.id),
              },
            ],
            0,
          )
    }
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        clear()
        const rootOf = new Map<number, number>()
        for (const one of steps) {
          if ('add' in one) {
            add(agenda, [wish(one.add, one.root)], one.due)
            if (!rootOf.has(one.add) || one.root !== one.add) rootOf.set(one.add, one.root)
          } else if ('gone' in one) {
            const root = rootOf.get(one.gone)
            if (root === undefined) continue
            agenda.recordLooks([{ ...outcome, rootId: idOf(root), gone: [idOf(one.gone)] }], 0)
            rootOf.delete(one.gone)
          } else if ('later' in one) {
            agenda.recordLooks([{ ...outcome, rootId: idOf(one.later), dueMs: one.due, attempts: 1 }], 0)
          } else {
            const root = rootOf.get(one.move)
            if (root === undefined || root === one.to) continue
            const moved = [{ id: idOf(one.move), rootId: idOf(one.to), hints: {} }]
            agenda.recordLooks([{ ...outcome, rootId: idOf(root), moved, attempts: 1 }], 0)
            rootOf.set(one.move, one.to)
          }
        }
        const roots = new Set(rootOf.values())
        const due = new Set(environment.table('due').keys({}))
        const counts = { members: agenda.count, due: due.size, roots: environment.table('roots').count() }
        const seen = [...roots].every((root) => {
          const lane = agenda.root(idOf(root))?.lane as Lane
          return agenda.due(lane, 1e6, none, 1).length > 0
        })
        return (
          counts.members === rootOf.size && counts.due === roots.size && counts.roots === roots.size && seen
        )
      }),
      { numRuns: 60 },
    )
    t.pass()
  },
)
