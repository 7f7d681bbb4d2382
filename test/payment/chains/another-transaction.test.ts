/** What is credited is what a chain has when the payment is final, and never what was seen at its report. */
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { RemoteChain } from '../../../src/chain/remote-chain.js'
import { type Transaction, transactionJson } from '../../../src/format/transaction.js'
import { ArweaveReader } from '../../../src/payment/chains/arweave-reader.js'
import type { ChainReader, SeenPayment } from '../../../src/payment/chains/seen-payment.js'
import { newRsaKey } from '../../../src/proof/new-key.js'
import { signTransaction, signTransactionEcdsa } from '../../../src/proof/sign.js'
import { verifyTransaction } from '../../../src/proof/transaction-proof.js'
import { nodeWith, patient } from '../../chain/hostile.js'
import { eventually } from '../../eventually.js'
import { type PaymentRig, paymentRig } from '../rig.js'

const own = Buffer.alloc(32, 9).toString('base64url')
const [alice, bob, carol] = [1, 2, 3].map((n) => Buffer.alloc(32, n).toString('base64url')) as [
  string,
  string,
  string,
]
const nothing = new Uint8Array(0)
const ar = 10n ** 12n

type Twins = readonly [Transaction, Transaction]

const tell = (rig: PaymentRig, id = 'tx') =>
  rig.post('/v1/account/balance/arweave', JSON.stringify({ tx_id: id }))

async function has(rig: PaymentRig, address: string): Promise<string | undefined> {
  return (await rig.service.balanceOf(address))?.winc
}

/** Two valid transactions with one signature, hence one id: the first pays the service, the second does not. */
const twins: Readonly<Record<string, () => Twins | Promise<Twins>>> = {
  'of a recovered key': () => {
    const tags = [{ name: 'Turbo-Credit-Destination-Address', value: alice }]
    const paying = signTransactionEcdsa(
      {
        format: 2,
        lastTx: Buffer.alloc(48, 5),
        target: Buffer.from(own, 'base64url'),
        quantity: 1000n * ar,
        reward: 1n,
        tags: tags.map(({ name, value }) => ({ name: Buffer.from(name), value: Buffer.from(value) })),
        dataSize: 0,
        data: nothing,
        dataRoot: nothing,
        denomination: 0,
      },
      Buffer.alloc(32, 6),
    )
    return [paying, { ...paying, target: Buffer.from(bob, 'base64url'), quantity: 1n, tags: [] }]
  },
  'of format 1': async () => {
    const jwk = await newRsaKey(2048)
    const target = Buffer.from(own, 'base64url')
    const quantity = 1000n * ar
    const paying = signTransaction(
      {
        format: 1,
        lastTx: Buffer.alloc(48, 5),
        target,
        quantity,
        reward: 1n,
        tags: [],
        dataSize: 0,
        data: nothing,
        dataRoot: nothing,
        denomination: 0,
      },
      jwk,
    )
    // The signed bytes are target, data, amount and reward, one behind the other.
    const data = Buffer.concat([target, Buffer.from(String(quantity).slice(0, -1))])
    return [paying, { ...paying, target: nothing, data, dataSize: data.length, quantity: 0n }]
  },
}

interface Node {
  readonly url: string
  pends(tx: Transaction): void
  mines(tx: Transaction, confirmations: number): void
}

async function arweaveNode(t: Test): Promise<Node> {
  const answers: Record<string, string | { status: number; body: string }> = {}
  const { url } = await nodeWith(t, answers)
  return {
    url,
    pends: (tx) => {
      answers[`/tx/${tx.id}/status`] = { status: 202, body: 'Pending' }
      answers[`/unconfirmed_tx/${tx.id}`] = JSON.stringify(transactionJson(tx))
    },
    mines: (tx, confirmations) => {
      const block = Buffer.alloc(48, 4).toString('base64url')
      const status = { block_height: 7, block_indep_hash: block, number_of_confirmations: confirmations }
      answers[`/tx/${tx.id}/status`] = JSON.stringify(status)
      answers[`/tx/${tx.id}`] = JSON.stringify(transactionJson(tx))
    },
  }
}

async function arweaveRig(t: Test, nodes: readonly Node[]): Promise<PaymentRig> {
  const chain = new RemoteChain({ ...patient, nodes: nodes.map(({ url }) => url) }, systemClock)
  const rig = await paymentRig(t, { readers: [new ArweaveReader(chain, 3)], addresses: { arweave: own } })
  t.teardown(() => chain.close())
  return rig
}

for (const [name, made] of Object.entries(twins)) {
  t.test(`two transactions of one id, ${name}`, async (t) => {
    const [paying, other] = await made()
    t.equal(verifyTransaction(paying), true)
    t.equal(verifyTransaction(other), true)
    const node = await arweaveNode(t)
    const rig = await arweaveRig(t, [node])
    node.pends(paying)
    t.equal((await tell(rig, paying.id)).status, 202)
    node.mines(other, 1)
    t.equal((await tell(rig, paying.id)).status, 202, 'it is not deep yet')
    node.mines(other, 3)
    await rig.service.recheck()
    t.match(await tell(rig, paying.id), {
      status: 400,
      json: { failedTransaction: { failedReason: /was not sent to the address of this service/ } },
    })
    t.equal(await has(rig, alice), undefined)
    t.strictSame((await rig.ledger.accounts('wallet:', '', 10)).length, 0, 'nobody has anything')
    // A chain that had the other one for some blocks only.
    node.mines(paying, 3)
    await eventually('it is credited', async () => (await tell(rig, paying.id)).status === 200)
    const [account] = await rig.ledger.accounts('wallet:', '', 10)
    t.equal(account?.creditsPosted, 766n * ar)
    node.mines(other, 4)
    await rig.service.recheck()
    await rig.service.recheck()
    const [left] = await rig.ledger.accounts('wallet:', '', 10)
    t.equal((left?.creditsPosted ?? 0n) - (left?.debitsPosted ?? 0n), 0n, 'taken back')
    t.strictSame((await rig.ledger.check()).faults, [])
  })

  t.test(`one node of two has the other transaction ${name}`, async (t) => {
    const [paying, other] = await made()
    const [honest, liar] = [await arweaveNode(t), await arweaveNode(t)]
    for (const nodes of [
      [liar, honest],
      [honest, liar],
    ]) {
      const rig = await arweaveRig(t, nodes)
      honest.mines(other, 3)
      liar.mines(paying, 3)
      await tell(rig, paying.id)
      t.equal((await rig.ledger.accounts('wallet:', '', 10)).length, 0, 'nobody has anything')
      await rig.service.close()
    }
  })
}

/** A chain that shows what the test sets. */
class ShownChain implements ChainReader {
  readonly chain = 'arweave'
  readonly tokens = ['arweave'] as const
  shown: SeenPayment = {
    id: 'tx',
    quantity: 1_000_000n,
    sender: alice,
    recipient: own,
    isFinal: false,
    isBeyondWatching: false,
  }
  find = async (): Promise<SeenPayment> => this.shown
  close = (): Promise<void> => Promise.resolve()
  show(change: Partial<SeenPayment>): void {
    this.shown = { ...this.shown, ...change }
  }
}

t.test('each fact is the one of the final transaction', async (t) => {
  const cases: readonly {
    readonly now: Partial<SeenPayment>
    readonly gets?: readonly [address: string, winc: string]
  }[] = [
    { now: {}, gets: [alice, '766000'] },
    { now: { quantity: 2_000n }, gets: [alice, '1532'] },
    { now: { quantity: 0n } },
    { now: { sender: bob }, gets: [bob, '766000'] },
    { now: { beneficiary: bob }, gets: [bob, '766000'] },
    { now: { sender: carol } },
    { now: { recipient: bob } },
  ]
  for (const { now, gets } of cases) {
    const chain = new ShownChain()
    const rig = await paymentRig(t, { readers: [chain], addresses: { arweave: own }, excluded: [carol] })
    t.equal((await tell(rig)).status, 202)
    chain.show({ isFinal: true, height: 7, ...now })
    const answer = await tell(rig)
    t.equal(answer.status, gets === undefined ? 400 : 200, answer.text)
    for (const address of [alice, bob, carol])
      t.equal(await has(rig, address), address === gets?.[0] ? gets[1] : undefined, answer.text)
    t.strictSame((await rig.ledger.check()).faults, [])
  }
})

t.test('a credited payment that its chain has otherwise since is credited as it is now', async (t) => {
  const chain = new ShownChain()
  const rig = await paymentRig(t, { readers: [chain], addresses: { arweave: own } })
  chain.show({ isFinal: true, height: 7 })
  t.equal((await tell(rig)).status, 200)
  for (const now of [{ quantity: 2_000_000n }, { beneficiary: bob }, { sender: carol, beneficiary: carol }]) {
    chain.show(now)
    await rig.service.recheck()
    await rig.service.recheck()
  }
  t.strictSame(await Promise.all([alice, bob, carol].map((one) => has(rig, one))), ['0', '0', '1532000'])
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('a credited payment that is in no block any more is taken back after a while', async (t) => {
  const chain = new ShownChain()
  const rig = await paymentRig(t, { readers: [chain], addresses: { arweave: own }, lostMs: 60_000 })
  chain.show({ isFinal: true, height: 7 })
  t.equal((await tell(rig)).status, 200)
  const { height: _height, ...waiting } = chain.shown
  chain.shown = { ...waiting, isFinal: false }
  await rig.service.recheck()
  t.equal(await has(rig, alice), '766000')
  rig.setTime(Date.UTC(2026, 0, 1) + 60_000)
  await rig.service.recheck()
  t.equal(await has(rig, alice), '0')
})
