/** Who leads a work on a database, where the one that leads it stands still. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { PostgresLeads } from '../../src/ledger/postgres-leads.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { suspend } from '../suspend.js'

/** So long may a process that leads get no processor. */
const silentMs = 4500

const child = fileURLToPath(new URL('leads-child.js', import.meta.url))

t.test(
  'a process that stands still leads no more, also when it goes on',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    const running = spawn(process.execPath, [...process.execArgv, child, server.url, String(silentMs)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(running, 'exit')
    let written = ''
    running.stdout.on('data', (text: Buffer) => {
      written += text.toString()
    })
    const leads = new PostgresLeads(server.url, 60_000, systemClock, silentMs)
    t.teardown(async () => {
      running.kill('SIGKILL')
      await ended
      await leads.close()
    })
    await eventually('the child leads', () => written === 'true\n')
    t.notOk(await leads.leads('a work'))
    t.ok(await leads.leads('another work'))
    await suspend(running)
    await eventually('the lead is free', () => leads.leads('a work'))
    running.kill('SIGCONT')
    await eventually('the child has noticed', () => written === 'true\nfalse\n')
    t.ok(await leads.leads('a work'), 'and it takes nothing back')
    // Longer than the server waits for a silent connection.
    await pause(1.5 * silentMs)
    t.equal(written, 'true\nfalse\n', 'one that goes on keeps it, also when it has nothing to ask')
  },
)

t.test(
  'a process that leads nothing has an answer whenever it comes back',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    const [first, other] = [60_000, 1500].map(
      (silentMs) => new PostgresLeads(server.url, 60_000, systemClock, silentMs),
    ) as [PostgresLeads, PostgresLeads]
    t.teardown(async () => {
      await Promise.all([first.close(), other.close()])
      await server.stop()
    })
    t.ok(await first.leads('a work'))
    for (let turn = 0; turn < 3; turn += 1) {
      t.equal(await other.leads('a work'), false, 'its connection was ended meanwhile')
      // Longer than the server waits for a silent connection.
      await pause(2500)
    }
    await first.close()
    await eventually('it follows', () => other.leads('a work'))
  },
)
