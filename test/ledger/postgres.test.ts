/** The ledger in PostgreSQL where others change the database, or the way to it is cut. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { headKey } from '../../src/ledger/head-key.js'
import { isLedgerGone, isRejected } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { PostgresSessions } from '../../src/ledger/postgres-session.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { random } from '../property.js'

const facts = { reason: 'test', reference: 'r' }

t.test(
  'a ledger in PostgreSQL',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    const key = headKey(join(t.testdir(), 'key.pem'))
    const opened = (url: string): Promise<PostgresLedger> =>
      PostgresLedger.open({ url, clock: systemClock, key })

    async function run(url: string, statements: readonly string[]): Promise<void> {
      const client = new Client({ connectionString: url })
      await client.connect()
      for (const statement of statements) await client.query(statement)
      await client.end()
    }

    async function filled(ledger: PostgresLedger): Promise<void> {
      const hold = { kind: 'pending', debit: 'source:t', credit: 'wallet:a', amount: 5n, ...facts } as const
      for (const id of ['one', 'two', 'three'])
        await ledger.commit({
          transfers: [{ id, ...hold, timeoutMs: 1e9 }],
          records: [{ kind: 'k', key: id, value: `"${id}"` }],
        })
      await ledger.commit({
        transfers: [{ id: 'end', kind: 'post', pending: 'one', ...facts }],
        records: [
          { kind: 'k', key: 'one', value: undefined },
          { kind: 'k', key: 'two', value: '2' },
        ],
      })
      await ledger.signHead()
    }

    t.test('services that begin at once on a database that is serializable unless said', async (t) => {
      const url = await server.database('serializable')
      await run(url, ['ALTER DATABASE serializable SET default_transaction_isolation = serializable'])
      const ledgers = await Promise.all([1, 2, 3].map(() => opened(url)))
      const give = { kind: 'posted', debit: 'source:t', credit: 'wallet:a', amount: 1n, ...facts } as const
      const ids = Array.from({ length: 60 }, (_, at) => `${at}`)
      const clients = ledgers.map(async (ledger, number) => {
        for (const id of ids) await ledger.commit({ transfers: [{ id: `${number}-${id}`, ...give }] })
      })
      await Promise.all(clients)
      for (const ledger of ledgers) {
        const { faults, transfers } = await ledger.check()
        t.strictSame([faults, transfers], [[], ledgers.length * ids.length])
        await ledger.close()
      }
    })

    t.test('a server that lets nobody in, or ends a statement, is away', async (t) => {
      const url = await server.database('closed')
      const fault = async (address: string, what: string): Promise<unknown> => {
        const sessions = new PostgresSessions(address, 1, 5000)
        const error = await sessions.ask(what).catch((reason: unknown) => reason)
        await sessions.close()
        return error
      }
      const operator = new Client({ connectionString: url })
      await operator.connect()
      await operator.query('CREATE ROLE guest')
      const at = (change: (one: URL) => void): string => {
        const changed = new URL(url)
        change(changed)
        return changed.href
      }
      const faults = {
        'a role that may not log in': await fault(
          at((one) => Object.assign(one, { username: 'guest' })),
          'SELECT 1',
        ),
        'no such database': await fault(
          at((one) => Object.assign(one, { pathname: '/none' })),
          'SELECT 1',
        ),
        'no TLS there': await fault(
          at((one) => one.searchParams.set('sslmode', 'require')),
          'SELECT 1',
        ),
        'an ended statement': await fault(url, 'SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(5)'),
        'no right': await fault(url, 'SET ROLE guest; SELECT * FROM pg_authid'),
      }
      for (const [what, error] of Object.entries(faults)) t.ok(isLedgerGone(error), `${what}: ${error}`)
      t.notOk(isLedgerGone(await fault(url, 'SELECT 1 FROM none')), 'a bug is none')
      await operator.end()
    })

    t.test('connections that are cut before a COMMIT, and behind it: each order happens once', async (t) => {
      const url = await server.database('cut')
      const { port, hostname } = new URL(url)
      const sockets = new Set<Socket>()
      const cuts = { begun: false, before: 0, behind: 0 }
      const proxy = createServer((client) => {
        const database = connect(Number(port), hostname)
        for (const socket of [client, database]) {
          sockets.add(socket)
          socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
        }
        client.on('close', () => database.destroy())
        database.on('close', () => client.destroy())
        let isCut = false
        client.on('data', (bytes) => {
          const way = cuts.begun && bytes.includes('COMMIT') ? random() : 1
          if (way < 0.15) {
            cuts.before += 1
            client.destroy()
            return
          }
          if (way < 0.3) {
            // The database carries it out, and its answer is lost.
            cuts.behind += 1
            isCut = true
          }
          database.write(bytes)
        })
        database.on('data', (bytes) => {
          if (isCut) client.destroy()
          else client.write(bytes)
        })
      }).listen(0, '127.0.0.1')
      await once(proxy, 'listening')
      t.teardown(() => {
        proxy.close()
        for (const socket of sockets) socket.destroy()
      })
      const { port: cutPort } = proxy.address() as AddressInfo
      const straight = await opened(url)
      // Waits between attempts are over at once.
      const clock = { ...systemClock, after: (_: number, act: () => void) => systemClock.after(1, act) }
      const ledgers = await Promise.all(
        [1, 2].map(() => PostgresLedger.open({ url: url.replace(`:${port}/`, `:${cutPort}/`), clock })),
      )
      cuts.begun = true
      const give = { kind: 'posted', debit: 'source:t', credit: 'wallet:a', amount: 1n, ...facts } as const
      const unknown: string[] = []
      const turns = 40
      const clients = ledgers.map(async (ledger, number) => {
        for (let at = 0; at < turns; at += 1) {
          const id = `${number}-${at}`
          const record = { kind: 'k', key: id, value: '1', expected: 0 }
          // With a transfer, which is known again by its id, and alone.
          const transfers = at % 2 === 0 ? [{ id, ...give }] : []
          try {
            const outcome = await ledger.commit({ transfers, records: [record] })
            if (isRejected(outcome)) t.fail(`${id}: ${outcome.rejected}`)
          } catch {
            unknown.push(id)
          }
          // What others do meanwhile with the same rows.
          if (at % 7 === 0)
            await straight.commit({ transfers: [], records: [{ ...record, value: '2', expected: 1e9 }] })
        }
      })
      await Promise.all(clients)
      t.ok(
        cuts.before > 0 && cuts.behind > 0,
        `${JSON.stringify(cuts)}, ${unknown.length} were told that it is unknown`,
      )
      const { faults, transfers } = await straight.check()
      t.strictSame(faults, [])
      const wallet = await straight.account('wallet:a')
      t.equal(wallet?.creditsPosted, BigInt(transfers))
      for (let number = 0; number < 2; number += 1)
        for (let at = 0; at < turns; at += 1) {
          const id = `${number}-${at}`
          if (!unknown.includes(id)) t.equal((await straight.record('k', id))?.value, '1', id)
        }
      await Promise.all([...ledgers, straight].map((ledger) => ledger.close()))
    })

    t.test('its check sees each row that was changed', async (t) => {
      const url = await server.database('changed')
      const ledger = await opened(url)
      await filled(ledger)
      t.strictSame((await ledger.check()).faults, [])
      const changes: readonly (readonly [change: string, back: string, pattern: RegExp])[] = [
        [
          "UPDATE ledger_records SET value = '3' WHERE key = 'two'",
          "UPDATE ledger_records SET value = '2' WHERE key = 'two'",
          /records are not those/,
        ],
        [
          "UPDATE ledger_records SET key = 'else' WHERE key = 'three'",
          "UPDATE ledger_records SET key = 'three' WHERE key = 'else'",
          /records are not those/,
        ],
        [
          "UPDATE ledger_endings SET pending = 'two'",
          "UPDATE ledger_endings SET pending = 'one'",
          /ends of pending transfers/,
        ],
        [
          "UPDATE ledger_transfers SET id = 'twp' WHERE id = 'two'",
          "UPDATE ledger_transfers SET id = 'two' WHERE id = 'twp'",
          /found as twp/,
        ],
        [
          'UPDATE ledger_transfers SET until_ms = until_ms + 1 WHERE sequence = 2',
          'UPDATE ledger_transfers SET until_ms = until_ms - 1 WHERE sequence = 2',
          /transfer 2 is found as/,
        ],
        [
          'UPDATE ledger_state SET sequence = 5',
          'UPDATE ledger_state SET sequence = 4',
          /the state says 5 transfers/,
        ],
        [
          `UPDATE ledger_transfers SET body = '{' || body WHERE sequence = 2`,
          'UPDATE ledger_transfers SET body = substr(body, 2) WHERE sequence = 2',
          /cannot be read/,
        ],
      ]
      for (const [change, back, pattern] of changes) {
        await run(url, [change])
        const { faults } = await ledger.check()
        t.ok(
          faults.some((fault) => pattern.test(fault)),
          `${change}: ${faults}`,
        )
        await run(url, [back])
      }
      t.strictSame((await ledger.check()).faults, [])
      await ledger.close()
    })

    t.test(
      'records that a service of an older version has changed are taken in at the next start',
      async (t) => {
        const url = await server.database('older')
        const ledger = await opened(url)
        await filled(ledger)
        // It knows nothing of the sum.
        await run(url, [
          "UPDATE ledger_records SET value = '4', version = 9 WHERE key = 'two'",
          'UPDATE ledger_state SET version = 9',
        ])
        await ledger.commit({ transfers: [], records: [{ kind: 'k', key: 'more', value: '1' }] })
        t.strictSame((await ledger.check()).faults, [])
        await ledger.close()
        const again = await opened(url)
        await again.commit({ transfers: [], records: [{ kind: 'k', key: 'more', value: undefined }] })
        t.strictSame((await again.check()).faults, [])
        await run(url, ["UPDATE ledger_records SET value = '5' WHERE key = 'two'"])
        t.match((await again.check()).faults, [/records/])
        await again.close()
      },
    )
  },
)
