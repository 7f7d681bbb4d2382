/** A settlement in doubt that its chain has, and may still drop, is waited for until it is final. */
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Cashier } from '../../src/admission/cashier.js'
import { cashierDefaults, Kinds } from '../../src/admission/cashier-messages.js'
import type { MovedOnChain } from '../../src/admission/chain-witness.js'
import { PaymentRecords } from '../../src/admission/payment-records.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

const payment = `84532:0x${'a1'.repeat(20)}:0x${'34'.repeat(32)}`
const transaction = `0x${'12'.repeat(32)}` as const
const dayMs = 24 * 3600_000

function* hours(): Generator<number, number> {
  for (let ms = 0; ; ms += 3600_000) yield ms
}

/** A cashier that takes up a payment from before a restart, hours later each time that the clock is read. */
function takenUp(t: Test, seen: () => MovedOnChain) {
  const hourly = hours()
  const clock = { ...systemClock, monotonic: () => hourly.next().value }
  const records = new PaymentRecords(scratch('patience'))
  const now = systemClock.now()
  const facts = {
    payment,
    digest: '0x',
    version: 1,
    payer: `0x${'a1'.repeat(20)}`,
    units: '1000',
    tokens: 1,
  } as const
  const end = {
    validBefore: Math.floor((now + dayMs) / 1000),
    resource: '/',
    beneficiary: 'one',
    message: '{}',
  }
  records.recordRequest({ ...facts, ...end, signature: '0x', signed: '', asker: 'one' }, now)
  const credited: string[] = []
  const looks: string[] = []
  const cashier = new Cashier({
    records,
    facilitator: {
      verify: async () => ({ verdict: 'nothing' }) as never,
      settle: async () => ({
        result: 'refused',
        reason: 'invalid_exact_evm_nonce_already_used',
        isClear: false,
      }),
      supported: async () => undefined as never,
    },
    credits: { credit: async (_: string, name: string) => void credited.push(name) } as never,
    witness: {
      async moved() {
        const found = seen()
        looks.push(found)
        return found
      },
    },
    kinds: new Kinds(),
    clock,
    log: silentLog,
    options: { ...cashierDefaults, retryMs: 1 },
  })
  t.teardown(() => cashier.close())
  cashier.start()
  return { cashier, credited, looks }
}

t.test('it stays open until it is final', async (t) => {
  let seen: MovedOnChain = 'early'
  const { cashier, credited, looks } = takenUp(t, () => seen)
  await eventually('it is looked at again and again', () => looks.length > 5)
  t.equal(cashier.find(payment)?.state, 'asked')
  seen = transaction
  await eventually('it is credited', () => cashier.find(payment)?.credited === true)
  t.strictSame(credited, [payment])
})

for (const [seen, doubtful] of [
  ['no', true],
  ['unknown', true],
  ['never', false],
] as const)
  t.test(`the end of one whose chain answers ${seen}`, async (t) => {
    const { cashier } = takenUp(t, () => seen)
    await eventually('it has ended', () => cashier.find(payment)?.state === 'failed')
    t.equal(cashier.find(payment)?.doubtful, doubtful)
  })
