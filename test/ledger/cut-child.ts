/**
 * A ledger whose file is damaged while it is open, in the way that the first word says: `cut`, `remove` or `replace`. Says when
 * it is open, then commits.
 */
import { copyFileSync, renameSync, statSync, truncateSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'

const [way = '', path = ''] = process.argv.slice(2)
const file = join(path, 'data.mdb')
const ledger = new EmbeddedLedger({ path, clock: systemClock, deferredMax: 16 })
const one = (at: number): Promise<unknown> =>
  ledger.commit({
    transfers: [
      {
        id: `t${at}`,
        kind: 'posted',
        debit: 'source:t',
        credit: `wallet:${at % 7}`,
        amount: 1n,
        reason: 'test',
        reference: 'r',
      },
    ],
  })
for (let at = 0; at < 100; at += 1) await one(at)
process.stdout.write('open\n')
if (way === 'cut') truncateSync(file, Math.floor(statSync(file).size / 2))
if (way === 'remove') unlinkSync(file)
if (way === 'replace') {
  copyFileSync(file, `${file}.new`)
  renameSync(`${file}.new`, file)
}
// Nobody must believe that it was done.
await one(100).then(
  () => process.stdout.write('committed\n'),
  () => process.stdout.write('refused\n'),
)
if (way === 'none') await ledger.close()
