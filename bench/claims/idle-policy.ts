import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { pause } from '../../src/actor/clock.js'
import { ownThread, ranks } from '../../src/actor/priority.js'
import { say } from '../kit/say.js'

const help = `idle-policy: how long a thread waits for locks that threads of low priority hold

  --seconds N  of each run (12)
  --rounds N   pairs of runs (3)

One thread compiles functions, and two others with a low priority do the same. All share the locks of V8 and of Node's task
queue. Shown is the longest turn of the first thread. It only says something while other programs use all processors.
`
const others = 2

/** Makes V8 optimise a new function: that is a task for another thread of V8, so the lock of their queue is taken. */
function compileOne(at: number): number {
  const sum = new Function(
    'n',
    `let s = ${at}; for (let k = 0; k < n; k++) s = (s + k * ${at}) | 0; return s`,
  )
  let total = 0
  for (let turn = 0; turn < 30; turn += 1) total += Number(sum(3000))
  return total
}

/** Milliseconds of the longest of all turns. */
async function longestTurn(seconds: number): Promise<number> {
  const end = performance.now() + seconds * 1000
  let longest = 0
  for (let at = 0; performance.now() < end; at += 1) {
    const begun = performance.now()
    compileOne(at)
    longest = Math.max(longest, performance.now() - begun)
    if (at % 20 === 0) await pause(1)
  }
  return longest
}

async function measure(isIdle: boolean, seconds: number): Promise<number> {
  const threads = Array.from({ length: others }, () => {
    return new Worker(new URL(import.meta.url), { workerData: { isIdle } })
  })
  await Promise.all(threads.map((thread) => once(thread, 'message')))
  const longest = await longestTurn(seconds)
  await Promise.all(threads.map((thread) => thread.terminate()))
  return longest
}

if (isMainThread) {
  const { values } = parseArgs({
    options: { help: { type: 'boolean' }, seconds: { type: 'string' }, rounds: { type: 'string' } },
  })
  if (values.help === true) say(help)
  else {
    for (let round = 0; round < Number(values.rounds ?? 3); round += 1) {
      for (const isIdle of [true, false]) {
        const longest = await measure(isIdle, Number(values.seconds ?? 12))
        say(`${isIdle ? 'SCHED_IDLE' : `nice ${ranks.query}`}: ${longest.toFixed(0)} ms`)
      }
    }
  }
} else {
  setPriority(ownThread(), ranks.query)
  if ((workerData as { isIdle: boolean }).isIdle)
    execFileSync('chrt', ['--idle', '--pid', '0', String(ownThread())])
  parentPort?.postMessage('ready')
  for (let at = 0; ; at += 1) compileOne(at)
}
