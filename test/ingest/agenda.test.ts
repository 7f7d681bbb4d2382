import t, { type Test } from 'tap'
import { Agenda, pauseMs } from '../../src/ingest/agenda.js'
import { openEnvironment } from '../../src/store/lmdb.js'
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
  t.same(names(agenda.due(999, 9, new Set([key('early').toString('hex')]))), ['middle', 'late'])
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
