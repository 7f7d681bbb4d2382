import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { headKey } from '../../src/ledger/head-key.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { hold, ledgerConformance, topUp } from './ledger.js'

// What was just written is found through memory, and after so many transfers and records through the tables.
for (const deferredMax of [1, 3, undefined]) {
  t.test(`embedded, tables after ${deferredMax ?? 'thousands'}`, (t) => embedded(t, deferredMax))
}

function embedded(t: Test, deferredMax: number | undefined): void {
  const root = t.testdir()
  let nowMs = 1_000_000
  // The time stands still but for `setTime`: what passes while the machine is busy must not end anything.
  const clock: Clock = { ...systemClock, now: () => nowMs, monotonic: () => nowMs }
  ledgerConformance(t, {
    open: async (place) =>
      new EmbeddedLedger({
        path: join(root, place),
        clock,
        key: headKey(join(root, 'key.pem')),
        ...(deferredMax === undefined ? {} : { deferredMax }),
      }),
    setTime: (ms) => {
      nowMs = ms
    },
  })
  t.end()
}

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('PostgreSQL', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const key = headKey(join(t.testdir(), 'key.pem'))
  let nowMs = 1_000_000
  const clock: Clock = { ...systemClock, now: () => nowMs }
  const urls = new Map<string, string>()
  const urlOf = async (place: string): Promise<string> => {
    const url = urls.get(place) ?? (await server.database(place))
    urls.set(place, url)
    return url
  }
  t.test('as every ledger', (t) => {
    ledgerConformance(t, {
      open: async (place) => PostgresLedger.open({ url: await urlOf(place), clock, key }),
      setTime: (ms) => {
        nowMs = ms
      },
    })
    t.end()
  })

  t.test('two services on one database share every credit exactly', async (t) => {
    const url = await urlOf('shared')
    // Both make the tables at the same moment: one of them does.
    const [one, two] = await Promise.all([
      PostgresLedger.open({ url, clock }),
      PostgresLedger.open({ url, clock }),
    ])
    await one.commit({ transfers: [topUp('t', 'wallet:a', 100n)] })
    const tries = Array.from({ length: 300 }, (_, at) => {
      const order = { transfers: [hold(`h${at % 150}`, 'wallet:a', 3n)] }
      return (at % 2 === 0 ? one : two).commit(order)
    })
    const outcomes = await Promise.all(tries)
    t.equal(outcomes.filter((outcome) => 'existed' in outcome && !outcome.existed).length, 33)
    t.strictSame((await two.check()).faults, [])
    await Promise.all([one.close(), two.close()])
  })
})
