import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { Cashier } from '../../../src/admission/cashier.js'
import { cashierDefaults, Kinds, type PaymentOrder } from '../../../src/admission/cashier-messages.js'
import { PaymentRecords } from '../../../src/admission/payment-records.js'
import type { SettlementClaims } from '../../../src/admission/settlement-claims.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { isRejected } from '../../../src/ledger/ledger-port.js'
import { SharedSettlements } from '../../../src/payment/usdc/shared-settlements.js'
import { usdcTransferId } from '../../../src/payment/usdc/usdc-transfers.js'
import { scratch } from '../../scratch.js'

const payer = `0x${'a'.repeat(40)}` as const
const payment = `8453:${payer}:0x${'b'.repeat(64)}`
const settledUnits = '1000000'

/** The payer has signed the nonce twice: this is the authorization that was not settled. */
const larger: PaymentOrder = {
  payment,
  digest: 'another',
  // Of a contract's wallet: only the chain can check it.
  signature: `0x${'11'.repeat(66)}`,
  signed: 'another',
  version: 2,
  payer,
  beneficiary: 'wallet',
  asker: '198.51.100.7',
  resource: 'https://desk.example/v1/x402/top-up',
  units: '10000000000',
  tokens: 1,
  validBefore: Math.floor(Date.now() / 1000) + 300,
  message: '{}',
}

/** A service that has not seen the payment before, whose facilitator states that the nonce is used. */
async function takenOver(t: Test, claims: SettlementClaims): Promise<PaymentRecords> {
  const records = new PaymentRecords(scratch('taken-over-records'))
  const cashier = new Cashier({
    records,
    claims,
    credits: { credit: async () => 'known' },
    kinds: new Kinds(),
    clock: systemClock,
    log: silentLog,
    facilitator: {
      verify: async () => ({ verdict: 'invalid', reason: 'invalid_transaction_state' }),
      settle: async () => ({ result: 'refused', reason: 'unexpected', isClear: true }),
      supported: async () => undefined,
    },
    options: { ...cashierDefaults, waitMs: 30_000 },
  } as ConstructorParameters<typeof Cashier>[0])
  t.teardown(() => cashier.close())
  t.match(await cashier.handle({ pay: larger }), { state: 'settled' })
  return records
}

t.test(
  'what was taken over is credited again by what was settled, not by what its bearer signed',
  async (t) => {
    const ledger = new EmbeddedLedger({ path: scratch('taken-over-ledger'), clock: systemClock })
    t.teardown(() => ledger.close())
    const facts = {
      reason: 'x402_topup',
      reference: `0x${'c'.repeat(64)}`,
      about: { tokenQuantity: settledUnits },
    }
    const paid = {
      id: usdcTransferId(payment),
      kind: 'posted',
      debit: 'source:x402',
      credit: 'wallet:w',
      amount: 5n,
      mayOverdraw: true,
      ...facts,
    } as const
    t.equal(isRejected(await ledger.commit({ transfers: [paid] })), false)
    const claims = new SharedSettlements(ledger, Date.now, { self: 'second', leftMs: 1000 })
    const records = await takenOver(t, claims)
    t.match(records.find(payment), { state: 'settled', units: settledUnits })
    t.match(records.credited(undefined, 10).records, [{ units: settledUnits }])
  },
)

t.test('where nobody knows the amount it is not credited again', async (t) => {
  const transaction = `0x${'c'.repeat(64)}`
  const records = await takenOver(t, {
    commonName: async () => 'all',
    claim: async () => undefined,
    clear: async () => undefined,
    look: async () => ({ state: 'credited', transaction, beneficiary: 'wallet', owner: 'all' }),
  })
  t.match(records.find(payment), { state: 'settled', isAmountUnchecked: true })
  t.strictSame(records.credited(undefined, 10).records, [])
})
