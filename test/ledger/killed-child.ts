/** A process that moves money until it is killed: says each transfer that was acknowledged, one a line. */
import { systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { isRejected, type MoneyLedger } from '../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import type { TransferOrder } from '../../src/ledger/transfer.js'

const [path = '', round = '0'] = process.argv.slice(2)
const isDatabase = path.startsWith('postgres://')
const ledger: MoneyLedger = isDatabase
  ? await PostgresLedger.open({ url: path, clock: systemClock })
  : // Killed while most is in memory, and while the tables are written.
    new EmbeddedLedger({ path, clock: systemClock, deferredMax: Number(round) % 2 === 0 ? 10 : 4096 })

async function recorded(id: string, order: TransferOrder): Promise<void> {
  const outcome = await ledger.commit({
    transfers: [order],
    records: [{ kind: 'done', key: id, value: JSON.stringify(id) }],
  })
  if (isRejected(outcome)) throw new Error(`${id}: ${outcome.rejected}`)
  process.stdout.write(`${id}\n`)
}

async function client(number: number): Promise<never> {
  for (let at = 0; ; at += 1) {
    const name = `${round}-${number}-${at}`
    const facts = { reason: 'test', reference: name }
    const wallet = `wallet:${number}`
    await recorded(`top:${name}`, {
      id: `top:${name}`,
      kind: 'posted',
      debit: 'source:t',
      credit: wallet,
      amount: 10n,
      ...facts,
    })
    await recorded(`hold:${name}`, {
      id: `hold:${name}`,
      kind: 'pending',
      debit: wallet,
      credit: 'revenue',
      amount: 7n,
      ...facts,
    })
    const kind = at % 3 === 0 ? 'void' : 'post'
    await recorded(`end:${name}`, { id: `end:${name}`, kind, pending: `hold:${name}`, ...facts })
  }
}

await Promise.all([1, 2, 3, 4].map(client))
