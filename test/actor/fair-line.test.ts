import t from 'tap'
import { FairLine } from '../../src/actor/fair-line.js'

t.test('the client that has used least is next, whoever came first', async (t) => {
  const line = new FairLine<string>(100, 50)
  for (let at = 0; at < 20; at += 1) t.notOk(line.add('greedy', `greedy ${at}`))
  const taken: string[] = []
  const turn = (costs: Record<string, number>): void => {
    const next = line.take()
    if (next === undefined) return
    taken.push(next.client)
    line.charge(next.client, costs[next.client] ?? 0)
    line.over(next.client)
  }
  const costs = { greedy: 250, modest: 1 }
  turn(costs)
  turn(costs)
  for (let at = 0; at < 3; at += 1) line.add('modest', `modest ${at}`)
  for (let at = 0; at < 5; at += 1) turn(costs)
  t.same(taken, ['greedy', 'greedy', 'modest', 'modest', 'modest', 'greedy', 'greedy'])
  // What was not asked for is not saved up: who comes back takes turns.
  for (let at = 0; at < 3; at += 1) line.add('modest', `modest ${at}`)
  taken.length = 0
  for (let at = 0; at < 4; at += 1) turn({ greedy: 250, modest: 250 })
  t.equal(taken.filter((client) => client === 'modest').length, 2)
})

t.test('where the line is full, who has most waiting makes room for who has less', async (t) => {
  const dropped: string[] = []
  const line = new FairLine<string>(6, 4, (job) => dropped.push(job))
  for (const job of ['a1', 'a2', 'a3', 'a4']) line.add('a', job)
  line.take()
  for (const job of ['b1', 'b2']) line.add('b', job)
  t.notOk(line.add('c', 'c1'))
  t.strictSame(dropped, ['a4'])
  t.equal(line.add('b', 'b3'), 'all', 'two wait of each')
  t.notOk(line.add('d', 'd1'))
  t.equal(line.add('e', 'e1'), undefined)
  t.strictSame(dropped, ['a4', 'a3', 'b2'])
  t.equal(line.add('f', 'f1'), 'all', 'nobody has more than one waiting')
  t.equal(line.size, 6)
})

t.test('who has many addresses or networks is served, and makes room, as one of them', (t) => {
  const many = [
    (at: number) => `45.33.7.${at}`,
    (at: number) => `45.33.${at}.1`,
    (at: number) => `2001:db8:${at}::`,
  ]
  for (const address of many) {
    const dropped: string[] = []
    const line = new FairLine<string>(100, 50, (job) => dropped.push(job))
    for (let at = 0; at < 100; at += 1) t.notOk(line.add(address(at), `greedy ${at}`))
    t.equal(line.add(address(200), 'one more'), 'all')
    for (let at = 0; at < 3; at += 1) t.notOk(line.add(`198.51.${at}.1`, `modest ${at}`))
    t.equal(dropped.length, 3)
    const taken: string[] = []
    for (let next = line.take(); next !== undefined; next = line.take()) {
      taken.push(next.job)
      line.charge(next.client, 10)
      line.over(next.client)
    }
    t.equal(taken.length, 100)
    t.strictSame(taken.slice(0, 6).filter((job) => job.startsWith('modest')).length, 3, 'every second turn')
  }
  t.end()
})

t.test('the line is bounded for all and for each, by what waits and what is open', async (t) => {
  const line = new FairLine<number>(4, 2)
  t.same(
    ['a', 'a', 'a', 'b', 'b', 'c'].map((client, at) => line.add(client, at)),
    [undefined, undefined, 'client', undefined, undefined, 'all'],
  )
  const first = line.take()
  t.equal(first?.client, 'a')
  t.equal(line.add('a', 9), 'client', 'what is open counts')
  line.over('a')
  t.notOk(line.add('c', 10))
  t.equal(line.size, 4)
  for (let next = line.take(); next !== undefined; next = line.take()) line.over(next.client)
  t.equal(line.size, 0)
  t.equal(line.take(), undefined)
})

t.test('a job that waits once more has its turn like others, beyond the bounds', async (t) => {
  const line = new FairLine<string>(2, 2)
  line.add('a', 'first')
  line.add('a', 'second')
  const taken = line.take()
  line.charge('a', 10)
  t.equal(line.add('b', 'other'), 'all')
  t.equal(taken?.job, 'first')
  line.again('a', 'first, resumed')
  t.equal(line.size, 2)
  t.match(line.take(), { client: 'a', job: 'first, resumed' })
  line.over('a')
  line.add('b', 'other')
  line.charge('a', 10)
  t.match(line.take(), { client: 'b', job: 'other' }, 'who has used less')
  t.throws(() => line.again('c', 'nothing'))
})

t.test('who waits once more has saved up no turns meanwhile', async (t) => {
  const line = new FairLine<string>(100, 100)
  line.add('a', 'waits')
  line.take()
  for (let round = 0; round < 50; round += 1) {
    line.add('b', `${round}`)
    line.take()
    line.charge('b', 10)
    line.over('b')
  }
  line.add('b', 'next')
  line.again('a', 'waits, resumed')
  const served: string[] = []
  for (let turn = 0; turn < 6; turn += 1) {
    const next = line.take()
    if (next === undefined) break
    served.push(next.client)
    line.charge(next.client, 10)
    if (next.client === 'a') line.again('a', 'resumed')
    else line.over('b')
  }
  t.ok(served.indexOf('b') <= 2, served.join())
})
