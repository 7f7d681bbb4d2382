/** Many settlements that nobody can decide: each has its own time, and those behind them have theirs. */
import t from 'tap'
import { systemClock, type Timer } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import type { PaymentRecord } from '../../../src/admission/payment-records.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { headKey } from '../../../src/ledger/head-key.js'
import { LeftSettlements } from '../../../src/payment/usdc/left-settlements.js'
import { SharedSettlements } from '../../../src/payment/usdc/shared-settlements.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'

const strangers = 200
const leftMs = 1000
const minuteMs = 60_000

t.test('the batches go on behind what cannot be decided, and come back to it ever later', async (t) => {
  const clock = { ...systemClock, now: () => nowMs }
  let nowMs = Date.UTC(2026, 0, 1)
  const folder = scratch('left-batches')
  const ledger = new EmbeddedLedger({ path: `${folder}/ledger`, clock, key: headKey(`${folder}/key.pem`) })
  t.teardown(() => ledger.close())
  const claims = new SharedSettlements(ledger, clock.now, { self: 'dead', leftMs })
  const ask = (name: string): Promise<void> =>
    claims.claim({ payment: name, beneficiary: 'site', validBefore: nowMs / 1000 + 86_400 } as never)
  for (let at = 0; at < strangers; at += 1) await ask(`0:${at}`)
  await ask('9:honest')
  const tries: string[] = []
  let [atOnce, most] = [0, 0]
  const left = new LeftSettlements({
    ledger,
    claims: new SharedSettlements(ledger, clock.now, { self: 'other', leftMs }),
    cashier: {
      find: () => undefined,
      async takeUp({ payment, ...record }: PaymentRecord) {
        tries.push(payment)
        atOnce += 1
        most = Math.max(most, atOnce)
        await new Promise((resolve) => setImmediate(resolve))
        atOnce -= 1
        const isHonest = payment === '9:honest'
        return { ...record, payment, state: isHonest ? 'settled' : 'failed', doubtful: !isHonest }
      },
    },
    hasChain: true,
    leftMs,
    clock,
    log: silentLog,
  })
  const pass = async (): Promise<number> => {
    tries.length = 0
    return left.work()
  }
  t.equal(await pass(), 0, 'their service may be at it still')
  t.equal(tries.length, 0)
  nowMs += 2 * leftMs
  t.equal(await pass(), 1, 'the honest one is behind all others')
  t.equal(new Set(tries).size, strangers + 1)
  t.ok(most > 1 && most <= 8, `${most} at once`)
  for (const [minutes, wanted] of [
    [0.5, 0],
    [0.5, strangers],
    [1, 0],
    [1, strangers],
    [3, 0],
    [1, strangers],
  ] as const) {
    nowMs += minutes * minuteMs
    t.equal(await pass(), 0)
    t.equal(tries.length, wanted, `${minutes} minutes later`)
  }
  nowMs += 9 * 86_400_000
  t.equal(await pass(), strangers, 'given up')
  t.equal(await pass(), 0)
  t.equal(tries.length, 0)
})

t.test('one that does not end, and one that throws each time, keep no others waiting', async (t) => {
  let nowMs = Date.UTC(2026, 0, 1)
  // The limit of each passes at once; what ends does so before.
  const after = (_: number, act: () => void): Timer => {
    const timer = setTimeout(act, 50)
    return { cancel: () => clearTimeout(timer) }
  }
  const clock = { ...systemClock, now: () => nowMs, after }
  const folder = scratch('left-hung')
  const ledger = new EmbeddedLedger({ path: `${folder}/ledger`, clock, key: headKey(`${folder}/key.pem`) })
  t.teardown(() => ledger.close())
  const dead = new SharedSettlements(ledger, clock.now, { self: 'dead', leftMs })
  const names = [...Array.from({ length: 20 }, (_, at) => `${at % 2}:${at}`), '9:honest']
  const validBefore = nowMs / 1000 + 86_400
  for (const payment of names) await dead.claim({ payment, beneficiary: 'site', validBefore } as never)
  nowMs += 2 * leftMs
  const errors: unknown[] = []
  let credited: () => void = () => undefined
  const oracle = new Promise<void>((resolve) => {
    credited = resolve
  })
  const claims = new SharedSettlements(ledger, clock.now, { self: 'other', leftMs })
  const left = new LeftSettlements({
    ledger,
    claims,
    cashier: {
      find: () => undefined,
      async takeUp(record: PaymentRecord) {
        if (record.payment.startsWith('0')) await oracle
        if (record.payment.startsWith('1')) throw new Error('its record is damaged')
        return { ...record, state: 'settled' }
      },
    },
    hasChain: true,
    leftMs,
    clock,
    log: { ...silentLog, error: (details: unknown) => void errors.push(details) },
  })
  t.equal(await left.work(), 1, 'the honest one')
  t.equal(errors.length, 10)
  t.match(errors[0], { err: { message: 'its record is damaged' }, payment: /^1:/ })
  credited()
  const open = async (): Promise<number> => {
    let count = 0
    for await (const { record } of claims.unended()) count += record === undefined ? 0 : 1
    return count
  }
  await eventually('those that took long have ended by themselves', async () => (await open()) === 10)
  t.equal(await left.work(), 0, 'the others have a time of their own')
  t.equal(errors.length, 10)
})
