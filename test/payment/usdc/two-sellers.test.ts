/** A gateway and a payment service with one wallet: one payment buys at one of them, whatever happens between them. */
import { constants } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Witness } from '../../../src/admission/chain-witness.js'
import { type PaymentOwners, RecordedOwners } from '../../../src/admission/payment-owners.js'
import { refuse } from '../../../src/format/refusal.js'
import { diskError } from '../../../src/store/disk-error.js'
import { payee } from '../../admission/scene.js'
import type { ScriptedFacilitator } from '../../admission/scripted-facilitator.js'
import { get, openShop, Purse, payment, type Shop } from '../../admission/shop.js'
import { eventually } from '../../eventually.js'
import { random } from '../../property.js'
import type { PaymentRig } from '../rig.js'
import { usdcScene } from './usdc-scene.js'

const wallet = `${'W'.repeat(42)}A`
const topUp = `/v1/x402/top-up/arweave/${wallet}`

interface Town {
  readonly facilitator: ScriptedFacilitator
  readonly rig: PaymentRig
  readonly purse: Purse
  readonly owners: PaymentOwners
  /** One at a time: its records are in one folder. */
  open(more?: { readonly owners?: PaymentOwners }): Promise<Shop>
  pay(): Promise<Record<string, string>>
  credited(): Promise<number>
}

async function town(t: Test): Promise<Town> {
  const { facilitator, rig, payer } = await usdcScene(t)
  const { usdc } = rig.service
  if (usdc === undefined) throw new Error('no USDC is taken')
  const owners = new RecordedOwners(
    (claim) => usdc.own(claim),
    async () => 'gateway',
  )
  // Sees on the chain what the facilitator moved, and not what for.
  const witness: Witness = {
    async moved({ payment, payer: from }) {
      const nonce = payment.slice(payment.lastIndexOf(':') + 1)
      return facilitator.used.has(from + nonce) ? `0x${'ab'.repeat(32)}` : 'no'
    },
  }
  const purse = new Purse()
  // Beside the ledger of the desk: a second `testdir` would remove the first.
  const path = join(t.testdirName, 'shop')
  return {
    facilitator,
    rig,
    purse,
    owners,
    open: (more = {}) =>
      openShop(t, {
        facilitatorUrl: facilitator.url,
        wallet: payee,
        path,
        purse,
        witness,
        owners,
        cashier: { retryMs: 5 },
        ...more,
      }),
    pay: () => payment(payer, 1, { to: payee }),
    async credited() {
      const page = await rig.ledger.history('source:x402', Number.MAX_SAFE_INTEGER, 1000)
      return page.length
    },
  }
}

/** Who brings more payments in a burst that come to nothing is turned away for a while. */
const rounds = 5

for (const remembers of [false, true, false, true])
  t.test(`both at once${remembers ? ', of a facilitator that says yes to both' : ''}`, async (t) => {
    const { facilitator, rig, purse, open, pay, credited } = await town(t)
    facilitator.remembers = remembers
    const shop = await open()
    for (let round = 1; round <= rounds; round += 1) {
      const headers = await pay()
      const buy = (): Promise<unknown> => get(`${shop.url}/file`, headers)
      const top = (): Promise<unknown> => rig.post(topUp, '', headers)
      const first = random() < 0.5
      await Promise.all(first ? [buy(), top(), buy()] : [top(), buy(), top()])
      // Again, when all is over: the other one has it even then.
      await Promise.all([buy(), top()])
      t.equal(purse.payments.size + (await credited()), round, `payment ${round} has bought once`)
    }
    t.equal(facilitator.used.size, rounds)
    t.strictSame((await rig.ledger.check()).faults, [])
  })

t.test('a settlement without an answer: the other one cannot have it meanwhile, nor later', async (t) => {
  const { facilitator, rig, purse, open, pay, credited } = await town(t)
  const shop = await open()
  const headers = await pay()
  let isHeld = true
  // The first call is lost before anything moves; those behind it wait.
  facilitator.settle = ({ response }) => {
    if (isHeld) response.destroy()
    return isHeld
  }
  const buying = get(`${shop.url}/file`, headers)
  await eventually('a settlement is under way', () => facilitator.count('settle') > 0)
  const refused = await rig.post(topUp, '', headers)
  t.equal(refused.status, 402)
  t.match(refused.json, { message: 'invalid_exact_evm_nonce_already_used' })
  t.equal(facilitator.used.size, 0, 'the desk has asked for nothing')
  isHeld = false
  t.equal((await buying).status, 200)
  t.equal((await rig.post(topUp, '', headers)).status, 402)
  t.equal(purse.payments.size, 1)
  t.equal(await credited(), 0)
})

t.test('killed while nobody knew: the one that asked first takes it up', async (t) => {
  const { facilitator, rig, purse, open, pay, credited } = await town(t)
  const headers = await pay()
  const first = await open()
  facilitator.afterSettle = ({ response }) => {
    // As a kill: what the process knew is what it had written.
    void first.close()
    response.destroy()
    return true
  }
  await get(`${first.url}/file`, headers).catch(() => undefined)
  await eventually('one payment is executed', () => facilitator.used.size === 1)
  facilitator.afterSettle = undefined
  facilitator.remembers = true
  t.equal((await rig.post(topUp, '', headers)).status, 402, 'the facilitator would say yes')
  t.equal(await credited(), 0)
  await first.close()
  await open()
  await eventually('one payment is credited', () => purse.payments.size === 1)
})

t.test('what the desk took before is not taken up by a gateway that was killed', async (t) => {
  const { facilitator, rig, purse, open, pay, credited } = await town(t)
  facilitator.remembers = true
  const headers = await pay()
  // Records of a release that settled without an owner: by them the settlement was requested.
  const first = await open({ owners: { own: async () => 'ours' } })
  facilitator.settle = ({ response }) => {
    void first.close()
    response.destroy()
    return true
  }
  await get(`${first.url}/file`, headers).catch(() => undefined)
  await first.close()
  facilitator.settle = undefined
  t.equal((await rig.post(topUp, '', headers)).status, 200)
  const second = await open()
  await eventually('the second one has it as failed', () => second.records.recent(1)[0]?.state === 'failed')
  t.equal(purse.payments.size, 0)
  t.equal(await credited(), 1)
})

t.test('where nobody can say whose it is, nothing is asked for', async (t) => {
  const { facilitator, open, pay } = await town(t)
  const silent = new RecordedOwners(
    async () => refuse('late', 'upstream', 'no answer'),
    async () => 'gateway',
  )
  const fullDisk = new RecordedOwners(
    async ({ owner }) => ({ owner }),
    async () => {
      throw diskError(constants.errno.ENOSPC, 'no name is made')
    },
  )
  for (const owners of [silent, fullDisk]) {
    const shop = await open({ owners })
    t.equal((await get(`${shop.url}/file`, await pay())).status, 503)
    t.equal(facilitator.count('settle'), 0)
    await shop.close()
  }
})
