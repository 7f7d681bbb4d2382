/** A process that moves money until its disk takes no more: says each transfer that was acknowledged, then how it ended. */
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { isLedgerGone, isRejected } from '../../src/ledger/ledger-port.js'

const [path = '', deferredMax = ''] = process.argv.slice(2)
const ledger = new EmbeddedLedger({ path, clock: systemClock, deferredMax: Number(deferredMax) })
const failures: unknown[] = []

async function give(id: string): Promise<void> {
  const move = { id, kind: 'posted', debit: 'source:t', credit: `wallet:${id.at(-1)}`, amount: 1n } as const
  const records = [{ kind: 'k', key: id, value: JSON.stringify('x'.repeat(400)) }]
  try {
    const outcome = await ledger.commit({
      transfers: [{ ...move, reason: 'test', reference: 'r' }],
      records,
    })
    if (isRejected(outcome)) throw new Error(`${id}: ${outcome.rejected}`)
    process.stdout.write(`${id}\n`)
  } catch (error) {
    failures.push(error)
  }
}

/** Groups that fail are followed by others: the file must stay as it was. */
for (let group = 0; failures.length < 100 && group < 1000; group += 1)
  await Promise.all(Array.from({ length: 20 }, (_, at) => give(`t${group}-${at}`)))
const { faults } = await ledger.check()
process.stdout.write(`${JSON.stringify({ faults, isGone: failures.map(isLedgerGone) })}\n`)
await ledger.close()
