/** A process that shares, spends and takes back credits until it is killed. Says each step that was acknowledged, one a line. */
import { systemClock } from '../../../src/actor/clock.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import type { MoneyLedger } from '../../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../../src/ledger/postgres.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../../src/payment/books/credits.js'
import { Wallets } from '../../../src/payment/books/wallets.js'
import { below } from '../../property.js'
import { sharers } from './sharers.js'

const [path = '', round = '0'] = process.argv.slice(2)
const ledger: MoneyLedger = path.startsWith('postgres://')
  ? await PostgresLedger.open({ url: path, clock: systemClock })
  : new EmbeddedLedger({ path, clock: systemClock, deferredMax: Number(round) % 2 === 0 ? 10 : 4096 })
const wallets = new Wallets(ledger)
const approvals = new Approvals(ledger, wallets, systemClock.now, systemClock.now)
const credits = new LedgerCredits({ ledger, wallets, approvals, price: async (bytes) => BigInt(bytes) })

async function client(number: number): Promise<never> {
  for (let at = 0; ; at += 1) {
    const id = `${round}-${number}-${at}`
    const [payingAddress = '', approvedAddress = ''] = number % 2 === 0 ? sharers : [...sharers].reverse()
    const pair = { payingAddress, approvedAddress }
    const seconds = below(3) === 0 ? { expiresInSeconds: 1 } : {}
    await credits.approve({ itemId: `a${id}`, ...pair, winc: String(1 + below(20)), ...seconds })
    const order = { itemId: `i${id}`, address: approvedAddress, signatureType: 1, paidBy: [payingAddress] }
    await credits.reserve({ ...order, bytes: 1 + below(30) })
    await (below(2) === 0 ? credits.settle(order.itemId) : credits.refund(order.itemId))
    if (below(20) === 0) await credits.revoke({ itemId: `r${id}`, ...pair })
    if (below(20) === 0) await approvals.expire()
    process.stdout.write(`${id}\n`)
  }
}

await Promise.all([1, 2, 3, 4].map(client))
