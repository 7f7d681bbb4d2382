import t, { type Test } from 'tap'
import { Agenda, pauseMs, type TaskLine } from '../../src/ingest/agenda.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { fc } from '../property.js'
import { folder } from './house.js'

const key = (name: string): Buffer => Buffer.from(name)
const names = (tasks: readonly { key: Uint8Array }[]): string[] =>
  tasks.map((task) => Buffer.from(task.key).toString())

function agendaOf(t: Test, max = 100) {
  const path = folder(t)
  const environment = openEnvironment(path)
  t.teardown(() => environment.close())
  return { environment, agenda: new Agenda(environment, 'work', max), path }
}
const put = (agenda: Agenda, name: string, dueMs: number): number =>
  agenda.put([{ key: key(name), value: Buffer.from(name) }], dueMs)

t.test('tasks are given in the order in which they are due, none before', async (t) => {
  const { agenda } = agendaOf(t)
  put(agenda, 'late', 300)
  put(agenda, 'early', 100)
  put(agenda, 'middle', 200)
  t.same(names(agenda.due(99, 9)), [])
  t.same(names(agenda.due(250, 9)), ['early', 'middle'])
  t.same(names(agenda.due(250, 1)), ['early'])
  t.equal(agenda.nextMs, 100)
})

t.test('a failed task comes again later, with its failures counted; a done one never', async (t) => {
  const { agenda } = agendaOf(t)
  put(agenda, 'a', 1)
  agenda.later(agenda.due(1, 1)[0]!, 50)
  t.same(agenda.due(49, 9), [])
  const [again] = agenda.due(50, 1)
  t.equal(again?.attempts, 1)
  t.equal(Buffer.from(again?.value ?? []).toString(), 'a')
  agenda.done(again!)
  t.equal(agenda.count, 0)
  t.equal(agenda.nextMs, undefined)
})

t.test('a task that was put again while it was worked on is not removed', async (t) => {
  const { agenda } = agendaOf(t)
  put(agenda, 'a', 1)
  const [task] = agenda.due(1, 1)
  put(agenda, 'a', 1)
  agenda.done(task!)
  t.equal(agenda.count, 1)
  agenda.later(task!, 500)
  t.equal(agenda.due(1, 1)[0]?.attempts, 0, 'and its failures do not count')
})

t.test('a full agenda returns how many were refused, and updates known tasks', async (t) => {
  const { agenda } = agendaOf(t, 2)
  const tasks = ['a', 'b', 'c', 'd'].map((name) => ({ key: key(name), value: Buffer.alloc(0) }))
  t.equal(agenda.put(tasks, 1), 2)
  t.equal(put(agenda, 'a', 5), 0)
  t.equal(agenda.count, 2)
  t.same(names(agenda.due(9, 9)), ['b', 'a'])
})

t.test('pauses grow up to a bound', async (t) => {
  t.same(
    [0, 1, 2, 30].map((attempts) => pauseMs(attempts, 10, 1000)),
    [10, 20, 40, 1000],
  )
})

t.test('a task that was scheduled before the clock was set back is due now, not in a year', async (t) => {
  const { agenda } = agendaOf(t)
  const dayMs = 86_400_000
  const thenMs = 1000 * dayMs
  put(agenda, 'stray', thenMs)
  put(agenda, 'stray too', thenMs + dayMs)
  const nowMs = thenMs - 400 * dayMs
  t.same(names(agenda.due(nowMs, 9)), ['stray', 'stray too'])
  t.same(names(agenda.due(nowMs, 1)), ['stray'])
  put(agenda, 'due', nowMs)
  put(agenda, 'later', nowMs + dayMs)
  t.same(names(agenda.due(nowMs, 2)), ['due', 'stray'])
  for (const task of agenda.due(nowMs, 9)) agenda.later(task, nowMs + 500)
  t.same(names(agenda.due(nowMs, 9)), [], 'and then it waits as any other')
  t.same(names(agenda.due(nowMs + 500, 9)), ['due', 'stray', 'stray too'])
})

/** An agenda whose tasks are of the party that the first letter of their names says. */
function linesOf(t: Test) {
  const environment = openEnvironment(folder(t))
  t.teardown(() => environment.close())
  return new Agenda(environment, 'work', 1000, { partyOf: (value) => value.subarray(0, 1) })
}

/** The names of the next tasks of a line, so many, each taken while the next is chosen. */
function chosen(agenda: Agenda, line: TaskLine, count: number, without?: ReadonlySet<string>): string[] {
  const taken = new Set<string>()
  const found: string[] = []
  for (let at = 0; at < count; at += 1) {
    const task = agenda.next(line, taken, without)
    if (task === undefined) break
    taken.add(Buffer.from(task.key).toString('hex'))
    found.push(Buffer.from(task.value).toString())
  }
  return found
}

t.test('a task that was never tried does not stand behind those that failed', async (t) => {
  const agenda = linesOf(t)
  for (const name of ['a1', 'a2', 'a3']) put(agenda, name, 1)
  agenda.line(1)
  const failed = ['a1', 'a2', 'a3'].map(() => {
    const task = agenda.next('first', new Set())!
    agenda.later(task, 2, Buffer.from(`${Buffer.from(task.value)}!`))
    return task
  })
  t.equal(failed.length, 3)
  t.same(chosen(agenda, 'again', 9), [], 'not due')
  t.equal(agenda.nextMs, 2)
  put(agenda, 'a4', 3)
  agenda.line(3)
  t.equal(agenda.nextMs, undefined)
  t.same(chosen(agenda, 'first', 9), ['a4'])
  t.same(chosen(agenda, 'again', 9).sort(), ['a1!', 'a2!', 'a3!'], 'with what is known of them now')
  const again = agenda.next('again', new Set())!
  agenda.done(again)
  t.equal(chosen(agenda, 'again', 9).length, 2)
  put(agenda, 'a2', 4)
  agenda.line(4)
  t.same(chosen(agenda, 'first', 9), ['a4', 'a2'], 'put again it is new')
})

t.test('parties have turns, and each of them its tasks in the order in which they are due', async (t) => {
  const agenda = linesOf(t)
  for (let at = 0; at < 5; at += 1) put(agenda, `a${at}`, at + 1)
  put(agenda, 'b0', 50)
  put(agenda, 'c0', 60)
  agenda.line(99)
  t.same(chosen(agenda, 'first', 4), ['a0', 'b0', 'c0', 'a1'])
  const [a, b] = ['a', 'b'].map((party) => agenda.partyName({ value: Buffer.from(party) }))
  t.same(chosen(agenda, 'first', 9, new Set([a!])), ['b0', 'c0'])
  t.same(chosen(agenda, 'first', 9, new Set([a!, b!])), ['c0'])
  put(agenda, 'stray', 1000 * 86_400_000)
  agenda.line(100)
  t.ok(chosen(agenda, 'first', 9).includes('stray'), 'the clock was set back: it is due')
})

t.test('each party has its turn before another has two, and nothing is lost', async (t) => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-e][a-z]$/), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(names, (list) => {
      const agenda = linesOf(t)
      for (const name of list) put(agenda, name, 1)
      agenda.line(1)
      const parties = new Set(list.map((name) => name[0])).size
      const found = chosen(agenda, 'first', 99)
      t.equal(new Set(found.slice(0, parties).map((name) => name[0])).size, parties)
      t.same([...found].sort(), [...list].sort())
    }),
    { numRuns: 20 },
  )
})
