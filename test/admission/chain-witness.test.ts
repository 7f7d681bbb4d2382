/** A payment has moved when the chain cannot drop it any more, and never will when the chain cannot take it any more. */
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { ChainWitness } from '../../src/admission/chain-witness.js'
import { ClaimedSettlement } from '../../src/admission/claimed-settlement.js'
import { type NonceUse, scriptedChain } from './scripted-chain.js'

const [payer, wallet] = [`0x${'a1'.repeat(20)}`, `0x${'b2'.repeat(20)}`] as const
const nonce = `0x${'34'.repeat(32)}`
const use: NonceUse = {
  from: payer,
  nonce,
  to: wallet,
  units: 1000n,
  transaction: `0x${'12'.repeat(32)}`,
  block: 100_000,
}
const genesis = 1_700_000_000
const secondsOf = (block: number): number => genesis + 2 * block
const none = async (): Promise<undefined> => undefined

async function scene(t: Test, confirmations: number) {
  const chain = { tip: use.block, uses: [use] as readonly NonceUse[], isLagging: false }
  const node = await scriptedChain(t, {
    genesis,
    tip: () => chain.tip,
    uses: () => chain.uses,
    lags: () => chain.isLagging,
  })
  const witness = new ChainWitness({ ...node, wallet, limitMs: 60_000, confirmations }, systemClock)
  t.teardown(() => witness.close())
  const order = {
    payment: `84532:${payer}:${nonce}`,
    payer,
    units: '1000',
    validBefore: secondsOf(use.block + 100),
    requestedMs: secondsOf(use.block - 2) * 1000,
  }
  return { chain, calls: node.calls, witness, order }
}

t.test('a payment in a block that is not final has not moved yet', async (t) => {
  const { chain, witness, order } = await scene(t, 3)
  const shared = new ClaimedSettlement({
    witness,
    claims: {
      commonName: async () => 'house',
      claim: none,
      clear: none,
      look: async () => ({ state: 'left' }),
    },
    clock: systemClock,
    log: silentLog,
  })
  for (const depth of [0, 1]) {
    chain.tip = use.block + depth
    t.equal(await witness.moved(order), 'early')
    t.equal(await shared.taken(order as never), 'pending', 'who has asked waits')
    t.equal(await witness.moved({ ...order, units: '1001' }), 'no', 'the chain may still drop it')
  }
  chain.tip = use.block + 2
  t.equal(await witness.moved(order), use.transaction)
  t.same(await shared.taken(order as never), { transaction: use.transaction, units: order.units })
  t.equal(await witness.moved({ ...order, units: '1001' }), 'never', 'its nonce paid something else')
  chain.isLagging = true
  t.equal(await witness.moved(order), 'unknown', 'a node without the receipt decides nothing')
  chain.uses = [{ ...use, isCanceled: true }]
  t.equal(await witness.moved(order), 'never', 'canceled')
})

t.test('an unused nonce never moves only by the time of a final block', async (t) => {
  const { chain, witness, order } = await scene(t, 50)
  chain.uses = []
  const end = use.block + 100
  for (const [tip, wanted] of [
    [end - 1, 'no'],
    [end, 'no'],
    [end + 48, 'no'],
    [end + 49, 'never'],
  ] as const) {
    chain.tip = tip
    t.equal(await witness.moved(order), wanted, `${tip - end} blocks behind the end`)
  }
})

t.test('the search reaches back to where the payment began', async (t) => {
  const { chain, calls, witness, order } = await scene(t, 3)
  for (const days of [0.1, 1, 20, 400]) {
    chain.tip = use.block + days * 43_200
    calls.length = 0
    t.equal(await witness.moved(order), use.transaction, `${days} days later`)
    t.ok(calls.length < 40, `${calls.length} requests`)
    const { requestedMs, ...unknown } = order
    t.equal(
      await witness.moved(unknown),
      use.transaction,
      `${days} days later, of which only the end is known`,
    )
  }
})
