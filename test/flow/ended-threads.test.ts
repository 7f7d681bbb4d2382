/** Threads of the whole program that end by a bug or for memory: by the engine's own debugger, as no request can. */
import { once } from 'node:events'
import t from 'tap'
import { eventually } from '../eventually.js'
import { debugged, evaluateIn } from './debugged.js'

const bug = "setTimeout(() => { throw new Error('a bug') }, 1)"
const memory =
  "setTimeout(() => { const all = []; for (;;) all.push(new Array(2 ** 20).fill('').map(String)) }, 1)"

t.test('a query thread or an edge thread that ends is replaced, and the program goes on', async (t) => {
  const { running, address } = await debugged(t, {
    SERVICES: 'gateway',
    DEVNET_SEED: 'false',
    EDGE_THREADS: '2',
    QUERY_THREADS: '1',
    SHUTDOWN_DRAIN_MS: '1000',
    NODE_OPTIONS: '--max-old-space-size=256',
  })
  const { gateway } = running.urls
  const body = JSON.stringify({ query: '{ transactions(first: 1) { edges { node { id } } } }' })
  const headers = { 'content-type': 'application/json', connection: 'close' }
  const query = () => fetch(`${gateway}/graphql`, { method: 'POST', headers, body })
  const replaced = (name: string) =>
    running.log.filter((line) => line.msg === 'a thread was replaced' && line.name === name).length
  t.equal((await query()).status, 200)

  const ways = [
    ['query-1', bug],
    ['query-1', memory],
    ['edge-1', bug],
    ['query-1', bug],
  ] as const
  const ends = new Map<string, number>()
  for (const [name, way] of ways) {
    const before = ends.get(name) ?? 0
    t.equal(replaced(name), before)
    await evaluateIn(address, name, way)
    await eventually(
      'the thread is replaced',
      () => replaced(name) === before + 1,
      () => running.log.slice(-4),
    )
    ends.set(name, before + 1)
    // Connections reach both edge threads, and each has a line to the query thread that is up.
    const statuses = await Promise.all(Array.from({ length: 12 }, () => query().then(({ status }) => status)))
    t.ok(
      statuses.every((status) => status === 200),
      `${name}: ${statuses}`,
    )
  }
  const logged = running.log.filter((line) => line.msg === 'a thread ended, and is replaced')
  t.same(
    logged.map(({ name, pauseMs }) => [name, Math.ceil(Number(pauseMs) / 100) * 100]),
    [
      ['query-1', 0],
      ['query-1', 1000],
      ['edge-1', 0],
      ['query-1', 2000],
    ],
  )
  const metrics = await (await fetch(`${gateway}/gateway/__gateway_metrics`)).text()
  t.match(metrics, /^watchdog_reports_total\{cause="ended".*\} 4$/m)
  t.equal(await running.stop(), 0)
})

t.test('a thread that writes ends the program, for a fresh one to recover from disk', async (t) => {
  const { running, address } = await debugged(t, {
    SERVICES: 'gateway',
    DEVNET_SEED: 'false',
    EDGE_THREADS: '1',
  })
  const exited = once(running.process, 'exit')
  await evaluateIn(address, 'catalog', bug)
  const [code] = await exited
  t.equal(code, 1)
})
