/** Two payment services on one database, of which one dies while USDC is settled: the other finds out, and credits it once. */
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { PostgresLedger } from '../../../src/ledger/postgres.js'
import type { X402Options } from '../../../src/payment/usdc/x402-processor.js'
import { newAccount, payee } from '../../admission/scene.js'
import { blockAt, scriptedChain } from '../../admission/scripted-chain.js'
import {
  type Script,
  type ScriptedFacilitator,
  scriptedFacilitator,
} from '../../admission/scripted-facilitator.js'
import { payment } from '../../admission/shop.js'
import { postgresFolder, startPostgres } from '../../engines/postgres-server.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import { type PaymentRig, paymentRig } from '../rig.js'

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false
const wallet = `${'W'.repeat(42)}A`
const path = `/v1/x402/top-up/arweave/${wallet}`
const value = '5000000'
const hourMs = 3600_000
/** Longer than a service is given to settle, and less than a payment is good for. */
const longMs = 2 * 60_000

/** A node that knows what the facilitator has moved. Its time is some seconds ahead, so that all of it is final. */
async function chainOf(t: Test, { used }: ScriptedFacilitator, now: () => number): Promise<string> {
  const startMs = Date.now()
  const genesis = Math.floor(startMs / 1000) - 30 * 86_400
  const { url } = await scriptedChain(t, {
    genesis,
    tip: () => blockAt(genesis, now() + 20_000),
    uses: () =>
      [...used].map(([key, transaction]) => ({
        from: key.slice(0, 42),
        nonce: key.slice(42),
        to: payee,
        units: BigInt(value),
        transaction,
        block: blockAt(genesis, startMs),
      })),
  })
  return url
}

interface Town {
  readonly facilitator: ScriptedFacilitator
  /** Another service on the same database. */
  open(): Promise<PaymentRig>
  pay(): Promise<Record<string, string>>
  /** Puts the time of a service and of the chain forward, from now on. */
  later(rig: PaymentRig, ms: number): void
}

let databases = 0
/** One server for all tests, each of which has a database of its own. */
const server = skip === false ? await startPostgres() : undefined
t.teardown(() => server?.stop())

async function town(t: Test, withChain: boolean): Promise<Town> {
  databases += 1
  const url = (await server?.database(`shared_${databases}`)) ?? ''
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  let aheadMs = 0
  facilitator.balances.set(payer.address.toLowerCase(), 100_000_000n)
  const chain = withChain
    ? { rpc: { url: await chainOf(t, facilitator, () => Date.now() + aheadMs), confirmations: 5 } }
    : {}
  const x402: Omit<X402Options, 'recordsPath'> = {
    network: 'base-sepolia',
    wallet: payee.toLowerCase(),
    facilitatorUrl: facilitator.url,
    protocol: 'http',
    verifyMs: 30_000,
    settleMs: 30_000,
    ...chain,
  }
  return {
    facilitator,
    async open() {
      const ledger = await PostgresLedger.open({ url, clock: systemClock })
      const rig = await paymentRig(t, { ledger, x402: { ...x402, recordsPath: scratch('x402-records') } })
      rig.setTime(Date.now())
      return rig
    },
    pay: () => payment(payer, 1, { to: payee, value }),
    later(rig, ms) {
      aheadMs = ms
      rig.setTime(Date.now() + ms)
    },
  }
}

const wincOf = async (rig: PaymentRig, of = wallet): Promise<string> => {
  const { json } = await rig.get(`/v1/balance?address=${of}`)
  return (json as { winc?: string } | undefined)?.winc ?? '0'
}

/** Brings a payment to a service that dies during the request to the facilitator, with or without moving it. */
async function dieAt(
  rig: PaymentRig,
  { facilitator }: Town,
  headers: Record<string, string>,
  at: 'settle' | 'afterSettle',
): Promise<void> {
  let isReached = false
  facilitator[at] = ({ response }) => {
    if (isReached) return false
    isReached = true
    response.destroy()
    // As a kill: what the process knew is what it had written.
    void rig.service.close()
    return true
  }
  const answer = rig.post(path, '', headers).catch(() => undefined)
  await eventually('the facilitator is reached', () => isReached)
  await rig.service.close()
  await answer
}

for (const withChain of [false, true])
  for (const at of ['settle', 'afterSettle'] as const) {
    const known = withChain ? 'its chain shows' : 'its facilitator remembers'
    const moved = at === 'settle' ? 'did not move' : 'moved'
    t.test(`died, and the money ${moved}, as ${known}`, { skip }, async (t) => {
      const scene = await town(t, withChain)
      const { facilitator } = scene
      facilitator.remembers = !withChain
      await dieAt(await scene.open(), scene, await scene.pay(), at)
      const other = await scene.open()
      t.equal(await other.service.finishAbandoned(), 0, 'it may be at it still')
      t.equal(await wincOf(other), '0')
      scene.later(other, longMs)
      t.equal(await other.service.finishAbandoned(), 1)
      const { json } = await other.get(`/v1/price/base-usdc/${value}`)
      t.equal(await wincOf(other), (json as { winc: string }).winc)
      t.equal(facilitator.used.size, 1)
      t.equal(await other.service.finishAbandoned(), 0, 'it has ended')
      t.equal(await wincOf(other), (json as { winc: string }).winc)
      t.strictSame((await other.ledger.check()).faults, [])
    })
  }

t.test('died, and the payer brings the payment to the other one', { skip }, async (t) => {
  const scene = await town(t, true)
  const headers = await scene.pay()
  await dieAt(await scene.open(), scene, headers, 'afterSettle')
  const other = await scene.open()
  other.setTime(Date.now() + longMs)
  const answer = await other.post(path, '', headers)
  t.equal(answer.status, 200, answer.text)
  t.equal(await other.service.finishAbandoned(), 1)
  const { json } = await other.get(`/v1/price/base-usdc/${value}`)
  t.equal(await wincOf(other), (json as { winc: string }).winc)
  t.strictSame((await other.ledger.check()).faults, [])
})

const strangers = `${'S'.repeat(42)}A`

t.test('credited by one: the other answers so without the chain, and after its time', { skip }, async (t) => {
  const scene = await town(t, false)
  const [one, other] = [await scene.open(), await scene.open()]
  const headers = await scene.pay()
  const paid = await one.post(path, '', headers)
  t.equal(paid.status, 200, paid.text)
  const { creditsGranted, txHash } = paid.json as Readonly<Record<string, string>>
  for (const ms of [0, hourMs]) {
    other.setTime(Date.now() + ms)
    const again = await other.post(path, '', headers)
    t.equal(again.status, 200, again.text)
    t.match(again.json, { creditsGranted, txHash, balance: creditsGranted })
    t.equal((await other.post(`/v1/x402/top-up/arweave/${strangers}`, '', headers)).status, 400)
  }
  t.strictSame((await other.ledger.check()).faults, [])
})
for (const withChain of [false, true])
  t.test(
    `left, and a stranger brings it for himself${withChain ? ', when it is on the chain' : ''}`,
    { skip },
    async (t) => {
      const scene = await town(t, withChain)
      const { facilitator } = scene
      facilitator.remembers = !withChain
      const headers = await scene.pay()
      await dieAt(await scene.open(), scene, headers, withChain ? 'afterSettle' : 'settle')
      const other = await scene.open()
      for (const ms of [0, longMs]) {
        other.setTime(Date.now() + ms)
        const answer = await other.post(`/v1/x402/top-up/arweave/${strangers}`, '', headers)
        t.equal(answer.status, 402, answer.text)
      }
      scene.later(other, longMs)
      t.equal(await other.service.finishAbandoned(), 1)
      const { json } = await other.get(`/v1/price/base-usdc/${value}`)
      t.equal(await wincOf(other), (json as { winc: string }).winc)
      t.equal(await wincOf(other, strangers), '0')
      t.strictSame((await other.ledger.check()).faults, [])
    },
  )

t.test(
  'brought to both at once: both answer that it is paid, and it is credited once',
  { skip },
  async (t) => {
    const scene = await town(t, true)
    const rigs = [await scene.open(), await scene.open()]
    const headers = await scene.pay()
    const answers = await Promise.all([...rigs, ...rigs].map((rig) => rig.post(path, '', headers)))
    t.strictSame(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
      answers.map(({ text }) => text).join(),
    )
    for (const rig of rigs) rig.setTime(Date.now() + longMs)
    for (const rig of rigs) await rig.service.finishAbandoned()
    for (const rig of rigs) {
      const { json } = await rig.get(`/v1/price/base-usdc/${value}`)
      t.equal(await wincOf(rig), (json as { winc: string }).winc)
    }
    t.equal(scene.facilitator.used.size, 1)
  },
)

for (const [hours, at] of [
  [1, 'soon'],
  [20, 'late'],
] as const)
  t.test(`one that cannot be decided keeps no others waiting, ${at}`, { skip }, async (t) => {
    const scene = await town(t, true)
    const { facilitator, later } = scene
    // The records are sorted by the payers' addresses.
    const accounts = [newAccount(), newAccount()].sort((a, b) =>
      a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1,
    )
    const [mean = newAccount(), honest = newAccount()] = accounts
    for (const { address } of accounts) facilitator.balances.set(address.toLowerCase(), 100_000_000n)
    const first = await scene.open()
    let reached = 0
    const lost: Script = ({ response }) => {
      reached += 1
      response.destroy()
      return true
    }
    facilitator.settle = (call) =>
      call.text.toLowerCase().includes(mean.address.slice(2).toLowerCase()) && lost(call)
    facilitator.afterSettle = lost
    const validBefore = Math.floor(Date.now() / 1000) + 86_000
    const posts = [
      first.post(path, '', await payment(honest, 1, { to: payee, value })),
      first.post(path, '', await payment(mean, 1, { to: payee, value, validBefore })),
    ].map((answer) => answer.catch(() => undefined))
    await eventually('both are at the facilitator', () => reached === 2)
    await first.service.close()
    await Promise.all(posts)
    facilitator.settle = undefined
    facilitator.afterSettle = undefined
    facilitator.balances.set(mean.address.toLowerCase(), 0n)
    const other = await scene.open()
    later(other, hours * hourMs)
    t.equal(await other.service.finishAbandoned(), 1)
    const { json } = await other.get(`/v1/price/base-usdc/${value}`)
    const { winc } = json as { winc: string }
    t.equal(await wincOf(other), winc)
    const { length } = facilitator.calls
    t.equal(await other.service.finishAbandoned(), 0)
    t.equal(facilitator.calls.length, length, 'the other one is looked at later')
    later(other, 25 * hourMs)
    t.equal(await other.service.finishAbandoned(), 1, 'it can never move')
    t.equal(await wincOf(other), winc)
    t.strictSame((await other.ledger.check()).faults, [])
  })

t.test('died, and nothing can be found out: it is said, and nothing is credited', { skip }, async (t) => {
  const scene = await town(t, false)
  await dieAt(await scene.open(), scene, await scene.pay(), 'afterSettle')
  const other = await scene.open()
  other.setTime(Date.now() + longMs)
  t.equal(await other.service.finishAbandoned(), 1)
  t.equal(await wincOf(other), '0')
  t.equal(await other.service.finishAbandoned(), 0)
})
