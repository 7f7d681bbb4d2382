import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { type Policy, policyOf } from '../../native/schedule/schedule.js'
import { type Had, IdleShare, ownIdleThreads } from '../../src/actor/idle-share.js'

/** One thread in `seconds` of which it had the processor for `ran`; it wanted it all the time, or not at all. */
function machine(refused?: string) {
  let [now, policy] = [{ thread: 7, ranNs: 0, waitedNs: 0 }, 'idle']
  const changes: string[] = []
  const logged: string[] = []
  const word = (_: object, text: string): void => void logged.push(text)
  const idleShare = new IdleShare(
    {
      look: (): Had[] => (policy === 'idle' ? [now] : []),
      put: (thread: number, as: Policy) => {
        changes.push(`${thread} ${as}`)
        if (refused === undefined) policy = as
        return refused
      },
    },
    { info: word, warn: word } as never,
  )
  const passes = (looks: number, ran: number, wants = true): void => {
    for (let look = 0; look < looks; look += 1) {
      now = { ...now, ranNs: now.ranNs + ran * 1e9, waitedNs: now.waitedNs + (wants ? (10 - ran) * 1e9 : 0) }
      idleShare.look()
    }
  }
  return { changes, logged, passes }
}

const [share, back] = ['7 other', '7 idle']

t.test(
  'a thread that gets almost no time for a minute has a share for the next one, and so on',
  async (t) => {
    const { changes, logged, passes } = machine()
    passes(6, 0.03)
    t.same(changes, [], 'the first look has nothing to compare with')
    passes(1, 0.03)
    t.same(changes, [share])
    passes(5, 1)
    t.same(changes, [share], 'still in its minute')
    passes(1, 1)
    t.same(changes, [share, back])
    passes(7, 0.03)
    t.same(changes, [share, back, share])
    t.equal(logged.length, 2)
  },
)

t.test(
  'one that gets enough, wants nothing, or was hungry for a moment only stays where it is',
  async (t) => {
    const { changes, passes } = machine()
    passes(20, 2)
    passes(20, 0, false)
    for (let time = 0; time < 5; time += 1) {
      passes(5, 0.03)
      passes(1, 3)
    }
    t.same(changes, [])
  },
)

t.test('without the privilege to leave SCHED_IDLE this is logged once and not tried again', async (t) => {
  const { changes, logged, passes } = machine('sched_setscheduler failed with error 1')
  passes(40, 0.03)
  t.same(changes, [share])
  t.equal(logged.length, 1)
})

t.test('the idle threads of a process are found, with their processor time', async (t) => {
  if (policyOf(0) !== 'other') {
    t.pass('the addon was not built, or may not ask')
    return
  }
  const priority = new URL('../../src/actor/priority.js', import.meta.url).href
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads')
    parentPort.once('message', () => 'ends')
    void import(${JSON.stringify(priority)}).then(({ ranks, stepBack }) => {
      stepBack(ranks.background)
      parentPort.postMessage('back')
    })`,
    { eval: true },
  )
  t.same(ownIdleThreads.look(), [], 'none yet')
  await once(worker, 'message')
  const [one, ...others] = ownIdleThreads.look()
  t.same(others, [])
  t.ok(one !== undefined && one.ranNs > 0)
  const refused = ownIdleThreads.put(one?.thread ?? 0, 'other')
  t.equal(ownIdleThreads.look().length, refused === undefined ? 0 : 1, 'with the privilege it comes back')
  await worker.terminate()
  t.equal(ownIdleThreads.put(process.ppid, 'idle'), undefined)
  t.not(policyOf(process.ppid), 'idle', 'no thread of another process')
})
