/** Leads a work, and says so. Writes its line of input under the fence that it had then, and says what came of it. */
import { once } from 'node:events'
import { systemClock } from '../../src/actor/clock.js'
import { Lead } from '../../src/ledger/lead.js'
import { isRejected } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'

const [url = ''] = process.argv.slice(2)
const ledger = await PostgresLedger.open({ url, clock: systemClock })
const lead = new Lead(ledger, 'a work')
const fence = await lead.take()
process.stdout.write(fence === undefined ? 'follows\n' : 'leads\n')
const [line] = (await once(process.stdin, 'data')) as [Buffer]
const record = { kind: 'written', key: 'by', value: JSON.stringify(line.toString().trim()) }
const outcome = await ledger.commit({
  transfers: [],
  records: [record, ...(fence === undefined ? [] : [fence])],
})
process.stdout.write(isRejected(outcome) ? `${outcome.rejected}\n` : 'written\n')
await ledger.close()
process.exit()
