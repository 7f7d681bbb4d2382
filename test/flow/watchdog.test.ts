/** Real threads of the whole program that are made to spin for ever: by the engine's own debugger, as no request can. */
import { get } from 'node:http'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { eventually } from '../eventually.js'
import { debugged, evaluateIn } from './debugged.js'
import { type Running, run } from './running.js'

const environment = {
  SERVICES: 'gateway',
  DEVNET_BLOCK_MS: '0',
  EDGE_THREADS: '2',
  WATCHDOG_SECONDS: '2',
  SHUTDOWN_DRAIN_MS: '1000',
}

/** Has the thread of this name run a loop without end. */
function spin(address: string, name: string): Promise<void> {
  return evaluateIn(address, name, 'setTimeout(function endless() { for (;;) {} }, 1)')
}

/** Over a connection of its own; undefined where nobody answers at once. */
function status(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 1500 }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
      answer.on('error', () => resolve(undefined))
    })
    request.on('timeout', () => request.destroy(new Error('nobody answered')))
    request.on('error', () => resolve(undefined))
  })
}

/** The log says that a thread of this name spins, and where. */
function isNamed(running: Running, name: string): boolean {
  return lines(running, 'a thread sends no heartbeat').some(
    (line) => line.name === name && line.cause === 'spins' && String(line.stack).includes('endless'),
  )
}

const lines = (running: Running, msg: string) => running.log.filter((line) => line.msg === msg)

t.test(
  'an edge thread that spins is named, ended and replaced, and the other one answers meanwhile',
  async (t) => {
    const { running, address } = await debugged(t, environment)
    const url = `${running.urls.gateway}/gateway/info`
    t.equal(await status(url), 200)
    for (const name of ['edge-1', 'edge-2']) {
      await spin(address, name)
      let good = 0
      let before = 0
      const isReplaced = (): boolean =>
        lines(running, 'a thread was replaced').some((line) => line.name === name)
      await eventually('the silent thread is replaced', async () => {
        const answers = await Promise.all(Array.from({ length: 6 }, () => status(url)))
        const answered = answers.filter((one) => one === 200).length
        if (isReplaced()) return true
        good += answered
        before += answers.length
        return false
      })
      t.ok(good > 0, `${good} of ${before} answered while ${name} span`)
      t.ok(isNamed(running, name), 'with what it does')
      // Connections reach both threads, and each of them is answered.
      for (let turn = 0; turn < 5; turn += 1) {
        const answers = await Promise.all(
          Array.from({ length: 12 }, () => eventually('an answer', () => status(url))),
        )
        t.ok(answers.every((one) => one === 200))
      }
    }
    const metrics = async (): Promise<string> =>
      (await fetch(`${running.urls.gateway}/gateway/__gateway_metrics`)).text()
    t.match(
      await metrics(),
      /^flows_in_flight(\{.*\})? [01]$/m,
      'flows of ended threads are not counted for ever',
    )
    // Those of the requests above close when they were idle for some seconds.
    await eventually('nor are their sockets', async () => /^sockets_open(\{.*\})? \d$/m.test(await metrics()))
    t.equal(await running.stop(), 0)
  },
)

t.test('a keeper that spins ends the program, for a fresh one to recover from disk', async (t) => {
  const { running, address } = await debugged(t, environment)
  await spin(address, 'moderation')
  const [code] = await new Promise<unknown[]>((resolve) =>
    running.process.once('exit', (...how) => resolve(how)),
  )
  t.equal(code, 1)
  t.ok(isNamed(running, 'moderation'), 'with what it does')
  t.match(
    lines(running, 'a thread failed for good: ending, so that the next start recovers from disk')[0]?.reason,
    /^moderation: moderation spins/,
  )
})

t.test('a program that was stopped for long ends no thread', async (t) => {
  const running = await run(t, t.testdir(), environment)
  running.process.kill('SIGSTOP')
  const stoppedMs = systemClock.monotonic()
  await eventually('a silence that ends threads', () => systemClock.monotonic() - stoppedMs > 3000)
  running.process.kill('SIGCONT')
  t.equal(
    await eventually('an answer after the stop', () => status(`${running.urls.gateway}/gateway/info`)),
    200,
  )
  // Long enough for a thread to be named that was silent from then on.
  for (let turn = 0; turn < 30; turn += 1) {
    await eventually('an answer', () => status(`${running.urls.gateway}/gateway/info`))
    await pause(100)
  }
  t.same(lines(running, 'a thread sends no heartbeat'), [])
  t.equal(await running.stop(), 0)
})
