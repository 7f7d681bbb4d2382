/** kill -9 at random moments: every transfer that was acknowledged is there, none twice, and everything adds up. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import type { MoneyLedger } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { random } from '../property.js'

const child = fileURLToPath(new URL('killed-child.js', import.meta.url))
/** Each takes as long as a process takes to start; LEDGER_KILLS asks for more. */
const kills = Number(process.env.LEDGER_KILLS ?? 5)

t.test(`killed ${kills} times in the middle of 4 clients`, async (t) => {
  const path = join(t.testdir(), 'ledger')
  await killed(t, kills, path, async () => new EmbeddedLedger({ path, clock: systemClock }))
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('the same with the ledger in PostgreSQL', { skip }, async (t) => {
  const server = await startPostgres(true)
  t.teardown(() => server.stop())
  const url = await server.database('killed')
  await killed(t, Math.ceil(kills / 2), url, () => PostgresLedger.open({ url, clock: systemClock }))
})

/** `path`: where the child finds its ledger; `open` opens the same here, when all is over. */
async function killed(t: Test, kills: number, path: string, open: () => Promise<MoneyLedger>): Promise<void> {
  const acknowledged = new Set<string>()
  for (let round = 0; round < kills; round += 1) {
    // After so many acknowledgements, and not after a time: on a busy machine a time may be too short for any.
    const enough = acknowledged.size + 1 + Math.floor(random() * 400)
    const running = spawn(process.execPath, [...process.execArgv, child, path, String(round)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const gone = once(running, 'close')
    let rest = ''
    running.stdout.on('data', (bytes: Buffer) => {
      const lines = (rest + bytes.toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) acknowledged.add(line)
      if (acknowledged.size >= enough) running.kill('SIGKILL')
    })
    const [code, signal] = (await gone) as [number | null, string | null]
    t.equal(signal, 'SIGKILL', `it ran until it was killed (${code})`)
  }
  const ledger = await open()
  const report = await ledger.check()
  t.strictSame(report.faults, [])
  const lost: string[] = []
  for (const id of acknowledged) {
    if ((await ledger.transfer(id)) === undefined || (await ledger.record('done', id)) === undefined)
      lost.push(id)
  }
  t.strictSame(lost, [])
  t.ok(report.transfers >= acknowledged.size, `${acknowledged.size} acknowledged, ${report.transfers} there`)
  // Ids are unique in the chain: the check found each transfer by its id at its own place.
  await ledger.close()
}
