/** The log reports a database that is gone, does not answer, or only reads; and that it is well again. */
import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { isLedgerGone } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { CreditsDesk } from '../../src/payment/operator/credits-desk.js'
import { fixedOracle } from '../../src/payment/prices/oracle.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

/** A way to a server that can be stopped: then bytes are taken and go nowhere. */
async function way(t: Test, to: string): Promise<{ readonly url: string; stop(isStopped: boolean): void }> {
  const target = new URL(to)
  const port = Number(target.port)
  let isStopped = false
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = dial(port, target.hostname)
    for (const [from, into] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes: Buffer) => (isStopped ? undefined : into.write(bytes)))
      from.on('error', () => undefined)
      from.on('close', () => {
        sockets.delete(from)
        into.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const place = server.address()
  target.port = String(typeof place === 'object' ? place?.port : 0)
  return {
    url: target.href,
    stop: (stopped) => {
      isStopped = stopped
    },
  }
}

t.test('payment_ledger_failing', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const direct = await server.database('failing')
  const { url, stop } = await way(t, direct)
  const ledger = await PostgresLedger.open({ url, clock: systemClock, answerMs: 2000 })
  t.teardown(() => ledger.close())
  const looks: (() => void)[] = []
  const clock: Clock = {
    ...systemClock,
    every: (_, act) => {
      looks.push(act)
      return { cancel: () => undefined }
    },
  }
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const desk = new CreditsDesk({
    ledger,
    oracle: fixedOracle(),
    meters,
    clock,
    reconciler: { list: async () => [] },
    balanceOf: async () => undefined,
  })
  t.teardown(() => desk.close())
  const failing = /^payment_ledger_failing (\d)$/m
  const says = (wanted: '0' | '1') =>
    eventually('the metric of failures', () => {
      for (const look of looks) look()
      return failing.exec(meters.text())?.[1] === wanted
    })
  t.ok(await says('0'))

  stop(true)
  t.ok(await says('1'), 'it does not answer')
  const why: unknown = await ledger.record('a', 'b').catch((error: unknown) => error)
  t.ok(isLedgerGone(why), String(why))
  stop(false)
  t.ok(await says('0'))

  const operator = new Client({ connectionString: direct })
  operator.on('error', () => undefined)
  await operator.connect()
  const setting = async (value: string): Promise<void> => {
    await operator.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`)
    await operator.query('SELECT pg_reload_conf()')
  }
  await setting('on')
  t.ok(await says('1'), 'it only reads')
  await operator.query('SET default_transaction_read_only = off')
  await setting('off')
  t.ok(await says('0'))
  await operator.end()

  await server.stop()
  t.ok(await says('1'), 'it is down')
  await server.start()
  t.ok(await says('0'), 'it is there again')
})
