/** The ledger in PostgreSQL where something other than a service has its hands on the database. */
import { join } from 'node:path'
import { Client } from 'pg'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { headKey } from '../../src/ledger/head-key.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { postgresFolder, startPostgres } from './postgres-server.js'

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

    async function asked(url: string, statements: readonly string[]): Promise<void> {
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

    t.test('its check sees each row that was changed', async (t) => {
      const url = await server.database('changed')
      const ledger = await opened(url)
      await filled(ledger)
      t.strictSame((await ledger.check()).faults, [])
      const changes: readonly (readonly [change: string, back: string, said: RegExp])[] = [
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
      for (const [change, back, said] of changes) {
        await asked(url, [change])
        const { faults } = await ledger.check()
        t.ok(
          faults.some((fault) => said.test(fault)),
          `${change}: ${faults}`,
        )
        await asked(url, [back])
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
        await asked(url, [
          "UPDATE ledger_records SET value = '4', version = 9 WHERE key = 'two'",
          'UPDATE ledger_state SET version = 9',
        ])
        await ledger.commit({ transfers: [], records: [{ kind: 'k', key: 'more', value: '1' }] })
        t.strictSame((await ledger.check()).faults, [])
        await ledger.close()
        const again = await opened(url)
        await again.commit({ transfers: [], records: [{ kind: 'k', key: 'more', value: undefined }] })
        t.strictSame((await again.check()).faults, [])
        await asked(url, ["UPDATE ledger_records SET value = '5' WHERE key = 'two'"])
        t.match((await again.check()).faults, [/records/])
        await again.close()
      },
    )
  },
)
