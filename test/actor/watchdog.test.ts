import { Worker } from 'node:worker_threads'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Heartbeats, listenForHeartbeats, nameNextThread } from '../../src/actor/heartbeats.js'
import { stackOf } from '../../src/actor/stack.js'
import { type Account, type Silence, Watchdog } from '../../src/actor/watchdog.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../http/hand-clock.js'

/** A thread of which the kernel says what the test says. */
function scene(name: string, silentMs = 10_000) {
  const heartbeats = new Heartbeats()
  const slot = heartbeats.claim(name, 77) ?? -1
  const clock = new HandClock()
  const reported: [Silence, boolean][] = []
  const heard: string[] = []
  const kernel: { account: Account | undefined } = { account: { state: 'S', cpuMs: 0 } }
  const watchdog = new Watchdog(heartbeats, clock, {
    silentMs,
    onSilent: (silence, isFirst) => reported.push([silence, isFirst]),
    onHeard: (one) => heard.push(one),
    account: () => kernel.account,
  })
  watchdog.start()
  /** So many seconds pass, in looks of one, each with so much processor time for the thread. */
  const pass = (seconds: number, cpuMs: number, state: string): void => {
    for (let at = 0; at < seconds; at += 1) {
      kernel.account = { state, cpuMs: (kernel.account?.cpuMs ?? 0) + cpuMs }
      clock.jump(1000)
    }
  }
  return { heartbeats, slot, clock, reported, heard, kernel, pass }
}

t.test('the account of the kernel is read of silent threads only', async (t) => {
  const heartbeats = new Heartbeats()
  const slots = [1, 2].map((thread) => heartbeats.claim(`edge-${thread}`, thread) ?? -1)
  const clock = new HandClock()
  const read: number[] = []
  const account = (thread: number): Account => {
    read.push(thread)
    return { state: 'S', cpuMs: 0 }
  }
  const options = { silentMs: 10_000, onSilent: () => undefined, onHeard: () => undefined, account }
  new Watchdog(heartbeats, clock, options).start()
  for (let at = 0; at < 5; at += 1) {
    heartbeats.beat(slots[0] ?? -1)
    clock.jump(1000)
  }
  t.same(read, [2, 2, 2, 2])
})

t.test('a thread with heartbeats is never reported, whatever it does', async (t) => {
  const { heartbeats, slot, reported, pass } = scene('edge-1')
  for (let at = 0; at < 60; at += 1) {
    heartbeats.beat(slot)
    pass(9, 1000, 'R')
  }
  t.same(reported, [])
})

t.test('a thread in an endless loop is reported, once as new', async (t) => {
  const { heartbeats, slot, reported, heard, pass } = scene('edge-1')
  pass(10, 1000, 'R')
  t.same(reported, [])
  pass(3, 1000, 'R')
  t.equal(reported.length, 3)
  t.match(reported[0], [{ name: 'edge-1', cause: 'spins', silentMs: 10_000 }, true])
  t.match(reported[2], [{ cause: 'spins' }, false])
  heartbeats.beat(slot)
  pass(1, 10, 'S')
  t.same(heard, ['edge-1'])
  pass(9, 10, 'S')
  t.equal(reported.length, 3)
})

t.test('a thread that gets little processor time is reported only when it had enough of it', async (t) => {
  const { reported, pass } = scene('edge-1')
  pass(26, 200, 'R')
  t.same(reported, [], 'others have the processor')
  pass(1, 200, 'R')
  t.match(reported, [[{ cause: 'spins' }, true]])
})

t.test('a thread that is ready but gets no processor is not reported', async (t) => {
  const { reported, pass } = scene('ingest')
  pass(500, 5, 'R')
  t.same(reported, [])
})

t.test(
  'a thread that waited for a disk first is told of again when it hangs for another cause',
  async (t) => {
    const { reported, pass } = scene('edge-1')
    pass(12, 0, 'D')
    pass(2, 0, 'S')
    pass(2, 0, 'D')
    pass(1, 0, 'S')
    const news = reported.filter(([, isFirst]) => isFirst).map(([{ cause }]) => cause)
    t.same(news, ['disk', 'sleeps'], 'each once')
  },
)

t.test(
  'a thread that sleeps in a call, or waits for a disk, is named so; a hand that waits for work is not',
  async (t) => {
    for (const [state, cause] of [
      ['S', 'sleeps'],
      ['D', 'disk'],
    ] as const) {
      const { reported, pass } = scene('catalog')
      pass(11, 0, state)
      t.match(reported, [[{ cause }, true]])
    }
    const { reported, pass } = scene('source/proof')
    pass(1000, 0, 'S')
    t.same(reported, [])
    pass(11, 1000, 'R')
    t.match(reported[0], [{ name: 'source/proof', cause: 'spins' }, true])
  },
)

t.test('time in which the watching thread was late does not count', async (t) => {
  const { clock, reported, kernel, pass } = scene('edge-1')
  pass(9, 1000, 'R')
  // Suspended, or stopped in a debugger: nothing moved.
  clock.jump(3_600_000)
  pass(9, 1000, 'R')
  t.same(reported, [])
  for (let at = 0; at < 100; at += 1) {
    kernel.account = { state: 'R', cpuMs: (kernel.account?.cpuMs ?? 0) + 6000 }
    clock.jump(6000)
  }
  t.same(reported, [], 'a machine on which even looking takes seconds')
})

t.test('the slot of a thread that was ended is free for another', async (t) => {
  const { heartbeats, kernel, clock, reported } = scene('edge-1')
  kernel.account = undefined
  clock.jump(1000)
  t.equal(heartbeats.read().length, 1, 'it may have sent its last heartbeat just now')
  clock.jump(1000)
  t.same(heartbeats.read(), [])
  for (let at = 0; at < 300; at += 1) heartbeats.claim(`a-${at}`, at)
  t.equal(heartbeats.read().length, 256)
  t.equal(heartbeats.claim('one too many', 1), undefined)
  t.same(reported, [])
})

t.test('a real thread with a real endless loop is found, and its stack says where', async (t) => {
  const heartbeats = new Heartbeats()
  listenForHeartbeats(heartbeats)
  nameNextThread('spinner')
  const code = `
    import(${JSON.stringify(new URL('../../src/actor/heartbeats.js', import.meta.url).href)}).then(({ keepHeartbeat }) => {
      keepHeartbeat()
      const { parentPort } = require('node:worker_threads')
      parentPort.once('message', function endless() { for (;;) {} })
      parentPort.postMessage('up')
    })`
  const worker = new Worker(code, { eval: true })
  t.teardown(() => worker.terminate())
  await new Promise((resolve) => worker.once('message', resolve))
  const reported: Silence[] = []
  const watchdog = new Watchdog(heartbeats, systemClock, {
    silentMs: 2000,
    onSilent: (silence) => reported.push(silence),
    onHeard: () => undefined,
  })
  watchdog.start()
  t.teardown(() => watchdog.stop())
  await eventually('a heart beats', () => heartbeats.read().some(({ count }) => count > 2))
  t.same(reported, [])
  worker.postMessage('go')
  const found = await eventually('the silent thread is reported', () => reported[0])
  t.match(found, { name: 'spinner', cause: 'spins' })
  const looks = await Promise.all([0, 1].map(() => stackOf(worker.threadId, 5000)))
  for (const stack of looks) t.match(stack?.[0], 'endless')
  await worker.terminate()
  await eventually('the ended thread has no heartbeat', () => heartbeats.read().length === 0)
})

t.test('a thread that stopped using processor time is at rest, and reported for that', async (t) => {
  const { reported, pass } = scene('ingest')
  pass(12, 1000, 'R')
  t.match(reported.at(-1)?.[0], { cause: 'spins' })
  pass(15, 0, 'S')
  t.match(reported.at(-1)?.[0], { cause: 'sleeps' })
  pass(1, 500, 'R')
  t.match(reported.at(-1)?.[0], { cause: 'spins' })
})

t.test('a thread that is long in one native call goes on after a look at its stack', async (t) => {
  const code = `
    const { parentPort } = require('node:worker_threads')
    const { pbkdf2Sync } = require('node:crypto')
    parentPort.on('message', (rounds) => {
      parentPort.postMessage('begun')
      if (rounds > 0) pbkdf2Sync('a', 'b', rounds, 64, 'sha512')
      parentPort.postMessage('over')
    })`
  const worker = new Worker(code, { eval: true })
  t.teardown(() => worker.terminate())
  const heard: string[] = []
  worker.on('message', (word: string) => heard.push(word))
  worker.postMessage(1_500_000)
  await eventually('it is in its call', () => heard.includes('begun'))
  t.equal(await stackOf(worker.threadId, 50), undefined)
  t.same(await Promise.all([stackOf(worker.threadId, 50), stackOf(worker.threadId, 50)]), [
    undefined,
    undefined,
  ])
  worker.postMessage(0)
  await eventually('both are over', () => heard.filter((word) => word === 'over').length === 2)
})
