/** A disk that is full in the middle of a block, or of the tables: what was acknowledged is there, and nothing else. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { random } from '../property.js'

const child = fileURLToPath(new URL('full-child.js', import.meta.url))

interface Report {
  readonly faults: readonly string[]
  readonly isGone: readonly boolean[]
}

for (const deferredMax of [10, 100_000])
  t.test(`full, with tables after ${deferredMax}`, async (t) => {
    const path = join(t.testdir(), 'ledger')
    // The file may not become larger: to a program it is a full disk, where it hears an error and no signal.
    const kib = 150 + Math.floor(random() * 150)
    const script = `trap '' XFSZ; ulimit -f ${kib}; exec "$0" "$@"`
    const words = [process.execPath, ...process.execArgv, child, path, String(deferredMax)]
    const { stdout, status } = spawnSync('bash', ['-c', script, ...words], {
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    t.equal(status, 0)
    const acknowledged = stdout.trim().split('\n')
    const { faults, isGone } = JSON.parse(acknowledged.pop() ?? '') as Report
    t.strictSame(faults, [])
    t.ok(isGone.length >= 100)
    t.strictSame(
      isGone.filter((one) => !one),
      [],
      'whoever asks again later may be answered',
    )
    const ledger = new EmbeddedLedger({ path, clock: systemClock })
    const report = await ledger.check()
    t.strictSame([report.faults, report.transfers], [[], acknowledged.length])
    for (const id of acknowledged)
      if ((await ledger.transfer(id)) === undefined || (await ledger.record('k', id)) === undefined)
        t.fail(`${id} is lost`)
    const more = { kind: 'posted', debit: 'source:t', credit: 'wallet:1', amount: 1n } as const
    await ledger.commit({ transfers: [{ id: 'later', ...more, reason: 'test', reference: 'r' }] })
    t.strictSame((await ledger.check()).faults, [])
    await ledger.close()
  })
