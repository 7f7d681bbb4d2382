/** The price of a report holds as long as a quote does: nobody may choose between two prices by when his payment is mined. */
import t, { type Test } from 'tap'
import { type Refusal, refuse } from '../../../src/format/refusal.js'
import type { ChainReader, SeenPayment } from '../../../src/payment/chains/seen-payment.js'
import { fixedOracle, type Oracle } from '../../../src/payment/prices/oracle.js'
import { type Rates, readRate, type TokenName } from '../../../src/payment/prices/rates.js'
import { paymentRig } from '../rig.js'

const own = `0x${'9'.repeat(40)}`
const payer = `0x${'1'.repeat(40)}`
const start = Date.UTC(2026, 0, 1)
const minute = 60_000

async function scene(t: Test, token: TokenName) {
  const [before, unknown] = [await fixedOracle().rates(), refuse('upstream', 'upstream', 'no prices')]
  let rates: Rates | Refusal = before
  const oracle: Oracle = { rates: async () => rates, about: { source: 'test' }, close: () => undefined }
  let shown: SeenPayment | 'absent' = {
    id: 'tx',
    quantity: 10n ** 18n,
    sender: payer,
    recipient: own,
    isFinal: false,
    isBeyondWatching: false,
  }
  const reader: ChainReader = {
    chain: 'test',
    tokens: [token],
    find: async () => shown,
    close: () => Promise.resolve(),
  }
  const rig = await paymentRig(t, { readers: [reader], addresses: { [token]: own }, oracle })
  const reported = await rig.post(`/v1/account/balance/${token}`, '{"tx_id":"tx"}')
  t.match(reported, { status: 202 })
  return {
    rig,
    /** AR for so many dollars; undefined: no prices are known. */
    price(ar: string | undefined): void {
      const usd = readRate(ar ?? '1') ?? 0n
      rates =
        ar === undefined || !('usd' in before) ? unknown : { ...before, usd: { ...before.usd, ar: usd } }
    },
    async mined(atMs: number): Promise<string | undefined> {
      rig.setTime(start + atMs)
      if (shown !== 'absent') shown = { ...shown, isFinal: true, height: 7 }
      await rig.service.recheck()
      return (await rig.service.balanceOf(payer))?.winc
    },
    async lost(): Promise<void> {
      const had = shown
      shown = 'absent'
      await rig.service.recheck()
      shown = had
    },
  }
}

/** One ETH at 2500 dollars, AR at 6.25 and at 12.5 dollars, without the fee. */
const [atOnce, later] = ['306400000000000', '153200000000000']

for (const token of ['ethereum', 'base-eth'] as const) {
  t.test(`a payment in ${token} that is mined soon has the price of its report`, async (t) => {
    const { price, mined } = await scene(t, token)
    price('12.5')
    t.equal(await mined(30 * minute - 1), atOnce)
  })

  t.test(`one in ${token} that is kept from being mined has the price of its block`, async (t) => {
    const { rig, price, mined } = await scene(t, token)
    price('12.5')
    await rig.service.recheck()
    price(undefined)
    t.equal(await mined(30 * minute), undefined, 'no price is known: it waits')
    price('12.5')
    t.equal(await mined(10 * 24 * 60 * minute), later)
    t.strictSame((await rig.ledger.check()).faults, [])
  })

  t.test(`one in ${token} that its chain lost and has again`, async (t) => {
    const { rig, price, mined, lost } = await scene(t, token)
    t.equal(await mined(minute), atOnce)
    price('12.5')
    await lost()
    t.equal(await mined(29 * minute), atOnce, 'the report is not old')
    await lost()
    t.equal(await mined(31 * minute), later)
    t.strictSame((await rig.ledger.check()).faults, [])
  })
}
