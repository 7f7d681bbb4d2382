/** A process that leads while it can: says each change of that, one a line. Words: URL, longest silence in ms. */
import { pause, systemClock } from '../../src/actor/clock.js'
import { PostgresLeads } from '../../src/ledger/postgres-leads.js'

const [url = '', silentMs = ''] = process.argv.slice(2)
const leads = new PostgresLeads(url, 60_000, systemClock, Number(silentMs))
for (let last: boolean | undefined; ; ) {
  const isLeading = await leads.leads('a work').catch(() => false)
  if (isLeading !== last) process.stdout.write(`${isLeading}\n`)
  last = isLeading
  await pause(50)
}
