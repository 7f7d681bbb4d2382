import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Task } from '../../src/ingest/agenda.js'
import { bundleAgenda } from '../../src/ingest/bundle-tasks.js'
import { OpeningMarks } from '../../src/ingest/opening-marks.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { eventually } from '../eventually.js'
import { folder, house } from './house.js'
import { gatekeeper, settled, town } from './town.js'

const child = fileURLToPath(new URL('./opening-ingest.js', import.meta.url))

async function killed(process: ChildProcess): Promise<void> {
  const gone = once(process, 'exit')
  process.kill('SIGKILL')
  await gone
}

t.test('a bundle at which the program was killed twice is opened after all others', async (t) => {
  const { devnet, bundle } = await town(t)
  const ends: number[] = []
  const mined = async (): Promise<void> => {
    await bundle(2)
    devnet.mine()
    const block = (await (await fetch(`${devnet.url}/block/current`)).json()) as { weave_size: string }
    ends.push(Number(block.weave_size))
  }
  for (let at = 0; at < 6; at += 1) await mined()
  // Which bundle each request for bytes is about.
  let opened: number[] = []
  let isSilent: (bundle: number) => boolean = () => true
  const node = await gatekeeper(t, devnet.url, (path) => {
    const chunk = /^\/chunk2?\/(\d+)/.exec(path)?.[1]
    if (chunk === undefined) return false
    const about = ends.findIndex((end) => Number(chunk) <= end)
    if (!opened.includes(about)) opened.push(about)
    return isSilent(about) && 'silent'
  })
  const path = folder(t)
  const first = fork(child, [path, node])
  let height = 0
  first.on('message', (now) => {
    height = Number(now)
  })
  await eventually('three are open and all are known', () => opened.length === 3 && height >= 6)
  await killed(first)
  // The one that stood first in line is the deadly one; two were open beside it.
  const [deadly = 0] = opened
  const besides = [0, 1, 2, 3, 4, 5].filter((one) => !opened.includes(one))
  t.equal(besides.length, 3)
  opened = []
  isSilent = (about) => about === deadly
  const second = fork(child, [path, node])
  await eventually('the deadly one is opened', () => opened.includes(deadly))
  await mined()
  await eventually('another one is opened beside it', () => opened.includes(6))
  await killed(second)
  const before = opened.slice(0, opened.indexOf(deadly))
  for (const one of besides) t.ok(before.includes(one), 'after those at which nothing happened')
  opened = []
  isSilent = () => false
  const on = house(t, node, {}, { path })
  await settled(on, devnet)
  t.equal(opened.at(-1), deadly, 'and after those that were open beside it')
  t.equal(on.meters.total('bundles_failed_total'), 0)
})

t.test('suspects are due with those first at which fewest runs ended, and later each time', (t) => {
  const environment = openEnvironment(folder(t))
  t.teardown(() => environment.close())
  const agenda = bundleAgenda(environment, 10)
  const [deadly, beside, other] = ['a', 'b', 'c'].map((name) => Buffer.alloc(32, name)) as [
    Buffer,
    Buffer,
    Buffer,
  ]
  agenda.put(
    [deadly, beside, other].map((key) => ({ key, value: Buffer.alloc(0) })),
    0,
  )
  const marks = (): OpeningMarks => new OpeningMarks(environment, agenda)
  const first = marks()
  for (const key of [deadly, beside, other]) first.begun(key)
  first.ended(other, false)
  const second = marks()
  second.load(1000)
  t.notOk(second.isSuspect(other.toString('hex')), 'it was not open any more')
  t.same(second.next(1000)?.key, deadly)
  t.equal(second.next(1000)?.attempts, 1)
  second.begun(deadly)
  const third = marks()
  third.load(2000)
  t.same(third.next(2000)?.key, beside)
  third.begun(beside)
  third.ended(beside, true)
  t.equal(third.next(2000), undefined)
  t.same(third.next(7000)?.key, deadly)
  third.begun(deadly)
  third.ended(deadly, false)
  const fourth = marks()
  fourth.load(8000)
  t.same(fourth.next(8000)?.attempts, 2, 'a thread that stops in between is no end')
  fourth.begun(deadly)
  const fifth = marks()
  fifth.load(9000)
  t.equal(fifth.next(18_999), undefined)
  t.same(fifth.next(19_000)?.key, deadly)
  t.end()
})

t.test('a disk that takes nothing ends neither a start nor a look, and counts nothing twice', (t) => {
  const environment = openEnvironment(folder(t))
  t.teardown(() => environment.close())
  const agenda = bundleAgenda(environment, 10)
  const [deadly, gone] = ['b', 'a'].map((name) => Buffer.alloc(32, name)) as [Buffer, Buffer]
  for (const key of [deadly, gone]) agenda.put([{ key, value: Buffer.alloc(0) }], 0)
  const first = new OpeningMarks(environment, agenda)
  for (const key of [deadly, gone]) first.begun(key)
  let isFull = true
  const full = Object.assign(Object.create(environment) as typeof environment, {
    write: <T>(act: () => T): T =>
      environment.write(() => {
        const done = act()
        if (isFull) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
        return done
      }),
  })
  const second = new OpeningMarks(full, agenda)
  for (let times = 0; times < 3; times += 1) t.throws(() => second.load(1000), { code: 'ENOSPC' })
  t.notOk(second.isSuspect(deadly.toString('hex')))
  isFull = false
  second.load(1000)
  isFull = true
  agenda.done(agenda.find(gone) as Task)
  t.match(second.next(1000), { key: deadly, attempts: 1 })
  t.notOk(second.isSuspect(gone.toString('hex')), 'its task is gone')
  t.end()
})
