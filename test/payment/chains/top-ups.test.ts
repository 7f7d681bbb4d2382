/** Payments on chains: on a real one, and through every state that a chain can show. */
import t from 'tap'
import { encodeFunctionData, type Hex, parseAbi, stringToHex } from 'viem'
import { systemClock } from '../../../src/actor/clock.js'
import { refuse } from '../../../src/format/refusal.js'
import type { Request } from '../../../src/http/exchange.js'
import { EvmReader } from '../../../src/payment/chains/evm-reader.js'
import type { ChainReader, SeenPayment } from '../../../src/payment/chains/seen-payment.js'
import {
  encodeTopUp,
  readTopUp,
  topUpKey,
  topUpKind,
  watchedKind,
} from '../../../src/payment/chains/top-up.js'
import { anvilPath, startChain } from '../../admission/anvil.js'
import { eventually } from '../../eventually.js'
import { paymentRig } from '../rig.js'

const own = Buffer.alloc(32, 9).toString('base64url')
const alice = Buffer.alloc(32, 1).toString('base64url')
const bob = Buffer.alloc(32, 2).toString('base64url')

type Shown = Awaited<ReturnType<ChainReader['find']>>

/** A chain that shows what the test sets. */
class ShownChain implements ChainReader {
  readonly chain = 'arweave'
  readonly tokens = ['arweave'] as const
  shown: Shown = 'absent'
  requests = 0
  /** Ids that it has, where not all look the same. */
  readonly only = new Set<string>()
  find = async (_: string, id: string): Promise<Shown> => {
    this.requests += 1
    return this.only.size === 0 || this.only.has(id) ? this.shown : 'absent'
  }
  close = (): Promise<void> => Promise.resolve()
  show(change: Partial<SeenPayment>): void {
    const facts = {
      id: 'tx',
      quantity: 1_000_000n,
      sender: alice,
      recipient: own,
      isFinal: false,
      isBeyondWatching: false,
    }
    this.shown = { ...facts, ...change }
  }
}

const start = Date.UTC(2026, 0, 1)

t.test('pending, credited once, lost by its chain, and back again', async (t) => {
  const chain = new ShownChain()
  const rig = await paymentRig(t, {
    readers: [chain],
    addresses: { arweave: own },
    excluded: [bob],
    lostMs: 60_000,
  })
  const tell = (body = '{"tx_id":"tx"}') => rig.post('/v1/account/balance/arweave', body)
  // What is no payment is remembered for some seconds.
  let others = 0
  const other = () => tell(`{"tx_id":"tx${others++}"}`)
  const has = async (): Promise<string | undefined> => (await rig.service.balanceOf(alice))?.winc
  t.match(await tell('x'), { status: 400, text: 'Invalid JSON in request body' })
  t.match(await tell('[]'), { status: 400, text: 'Invalid JSON in request body' })
  t.match(await tell('{}'), { status: 400, text: 'Missing tx_id in request body' })
  t.match(await other(), { status: 404, text: 'Transaction not found' })
  chain.shown = refuse('late', 'upstream', 'no node answers')
  t.equal((await other()).status, 503)
  chain.show({ quantity: 0n })
  t.match(await other(), { status: 400, text: 'Transaction quantity must be greater than 0' })
  chain.show({ quantity: 1n })
  t.match(await other(), { status: 400, text: /at least one winc/ })
  chain.show({ recipient: bob })
  t.equal((await other()).status, 400)
  chain.show({ sender: bob })
  t.match(await other(), {
    status: 403,
    text: `Payment transaction 'tx5' has sender that is on the excluded address list: '${bob}'`,
  })

  chain.show({})
  t.match(await tell(), {
    status: 202,
    json: { message: 'Transaction pending', pendingTransaction: { winstonCreditAmount: '766000' } },
  })
  t.match(await tell(), { status: 202, json: { message: 'Transaction already pending' } })
  t.equal(await has(), undefined)
  chain.show({ isFinal: true, height: 7 })
  const answers = await Promise.all([tell(), tell(), tell()])
  for (const { status } of answers) t.equal(status, 200)
  t.match(await tell(), {
    status: 200,
    json: { message: 'Transaction already credited', creditedTransaction: { transactionId: 'tx' } },
  })
  t.equal(await has(), '766000')

  chain.shown = refuse('upstream', 'upstream', 'silence')
  await rig.service.recheck()
  t.equal(await has(), '766000', 'nothing follows from silence')
  chain.shown = 'absent'
  await rig.service.recheck()
  rig.setTime(start + 59_999)
  await rig.service.recheck()
  t.equal(await has(), '766000', 'a node that lags behind takes nothing back')
  chain.show({ isFinal: true })
  await rig.service.recheck()
  chain.shown = 'absent'
  rig.setTime(start + 100_000)
  await rig.service.recheck()
  rig.setTime(start + 159_999)
  await rig.service.recheck()
  t.equal(await has(), '766000', 'it was seen in between')
  rig.setTime(start + 160_000)
  await rig.service.recheck()
  t.equal(await has(), '0', 'its chain has lost it')
  t.match(await tell(), { status: 202, json: { message: 'Transaction already pending' } })
  chain.show({ isFinal: true, isBeyondWatching: true })
  await rig.service.recheck()
  t.equal(await has(), '766000', 'and has it again')
  chain.shown = 'absent'
  rig.setTime(start + 10 * 24 * 3600_000)
  await rig.service.recheck()
  t.equal(await has(), '766000', 'too deep to be looked at')
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('a payment that cannot be looked at keeps no others waiting', async (t) => {
  const chain = new ShownChain()
  const rig = await paymentRig(t, { readers: [chain], addresses: { arweave: own } })
  chain.show({})
  t.equal((await rig.post('/v1/account/balance/arweave', '{"tx_id":"tx"}')).status, 202)
  const stored = await rig.ledger.record(topUpKind, topUpKey('arweave', 'tx'))
  const topUp = stored && readTopUp(stored)
  // Tokens that are not taken any more: one of this chain, one of another.
  for (const other of ['arweave', 'aaa']) {
    const key = topUpKey(other, '0')
    const value = topUp && encodeTopUp({ ...topUp, token: 'kyve', chain: other, id: '0' })
    const records = [
      { kind: topUpKind, key, value },
      { kind: watchedKind, key, value: '1' },
    ]
    await rig.ledger.commit({ transfers: [], records })
  }
  chain.show({ isFinal: true })
  t.equal(await rig.service.recheck(), 1)
  t.equal((await rig.service.balanceOf(alice))?.winc, '766000')
})

t.test('what was spent before a chain lost the payment is owed', async (t) => {
  const chain = new ShownChain()
  const rig = await paymentRig(t, { readers: [chain], addresses: { arweave: own }, lostMs: 0 })
  chain.show({ isFinal: true, quantity: 10_000_000n, beneficiary: bob })
  t.equal((await rig.post('/v1/account/balance/arweave', '{"tx_id":"tx"}')).status, 200)
  t.equal((await rig.service.balanceOf(bob))?.winc, '7660000', 'for the destination that the sender named')
  await rig.service.credits.reserve({ itemId: 'i', bytes: 0, address: bob, signatureType: 1, paidBy: [] })
  await rig.service.credits.settle('i')
  chain.shown = 'absent'
  await rig.service.recheck()
  t.equal((await rig.service.balanceOf(bob))?.winc, '-3200000')
  t.match(
    await rig.service.credits.reserve({ itemId: 'j', bytes: 0, address: bob, signatureType: 1, paidBy: [] }),
    { paid: false },
  )
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('strangers ask no node as often as they like, and keep nobody from it', async (t) => {
  const chain = new ShownChain()
  chain.only.add('paid').add('known')
  chain.show({})
  const clientOf = (request: Request): string => request.header('x-forwarded-for') ?? '127.0.0.1'
  const rig = await paymentRig(t, { readers: [chain], addresses: { arweave: own }, clientOf })
  const tell = (id: string, client: string) =>
    rig.post('/v1/account/balance/arweave', JSON.stringify({ tx_id: id }), { 'x-forwarded-for': client })
  t.equal((await tell('known', '20.1.1.1')).status, 202)
  const [requestsBefore, startMs] = [chain.requests, systemClock.monotonic()]
  // Each from a provider with two of them.
  const flood = Array.from({ length: 120 }, (_, at) => tell(`none${at}`, `${30 + (at >> 1)}.1.1.1`))
  await eventually('the chain gets twenty more requests', async () => chain.requests >= requestsBefore + 20)
  t.equal((await tell('paid', '200.1.1.1')).status, 202, 'a newcomer has the next turn')
  chain.show({ isFinal: true })
  t.equal((await tell('known', '20.1.1.1')).status, 200, 'what is known waits for no stranger')
  const seconds = (systemClock.monotonic() - startMs) / 1000
  t.ok(chain.requests - requestsBefore <= 2 + 20 + Math.ceil(seconds * 10), `${chain.requests} questions`)
  const answers = await Promise.all(flood)
  t.strictSame([...new Set(answers.map(({ status }) => status))].sort(), [404, 503])
})

t.test('a payment that was given up counts when its chain has it after all', async (t) => {
  const chain = new ShownChain()
  const rig = await paymentRig(t, { readers: [chain], addresses: { arweave: own } })
  const tell = () => rig.post('/v1/account/balance/arweave', '{"tx_id":"tx"}')
  chain.show({})
  t.equal((await tell()).status, 202)
  chain.shown = 'absent'
  rig.setTime(start + 24 * 3600_000)
  await rig.service.recheck()
  t.match(await tell(), { status: 400, json: { failedTransaction: { failedReason: 'not_found' } } })
  chain.show({ isFinal: true })
  await eventually('the top-up is accepted', async () => (await tell()).status === 200)
  t.match(await tell(), { status: 200, json: { message: 'Transaction already credited' } })
  t.equal((await rig.service.balanceOf(alice))?.winc, '766000', 'once')
  chain.shown = 'absent'
  await rig.service.recheck()
  t.equal((await rig.service.balanceOf(alice))?.winc, '0', 'and is looked at again')
  t.strictSame((await rig.ledger.check()).faults, [])
})

const binary = anvilPath()
const skip = binary === undefined ? 'no anvil for this machine' : false

t.test('ether and USDC on a real chain', { skip }, async (t) => {
  const chain = await startChain(t, binary ?? '', 'base')
  const receiver = await chain.account()
  const payer = await chain.account({ units: 50_000_000n, ether: 10n ** 19n })
  const contracts = { 'base-usdc': chain.usdc.address }
  const facts = {
    chain: 'base',
    url: chain.url,
    wallet: receiver.address,
    coins: ['base-eth'],
    contracts,
    confirmations: 3,
    limitMs: 60_000,
  } as const
  const reader = new EvmReader(facts, systemClock)
  const addresses = { 'base-eth': receiver.address, 'base-usdc': receiver.address }
  const rig = await paymentRig(t, { readers: [reader], addresses })
  const wallet = chain.wallet(payer)
  const tell = (token: string, id: string) =>
    rig.post(`/v1/account/balance/${token}`, JSON.stringify({ tx_id: id }))
  const sent = async (given: { to: Hex; value?: bigint; data?: Hex }): Promise<Hex> => {
    const hash = await wallet.sendTransaction(given)
    await wallet.waitForTransactionReceipt({ hash })
    return hash
  }
  const mine = async (): Promise<void> => {
    for (let blocks = 0; blocks < 3; blocks += 1) await sent({ to: payer.address })
  }
  const coin = await sent({ to: receiver.address, value: 10n ** 18n })
  t.match(await tell('base-eth', coin), { status: 202, json: { message: 'Transaction pending' } })
  const transfer = (to: Hex, amount: bigint): Hex =>
    encodeFunctionData({
      abi: parseAbi(['function transfer(address,uint256)']),
      functionName: 'transfer',
      args: [to, amount],
    })
  const token = chain.usdc.address as Hex
  const aim = stringToHex(`turboCreditDestinationAddress=${alice}`).slice(2)
  const aimed = await sent({ to: token, data: `${transfer(receiver.address, 6_250_000n)}${aim}` })
  const elsewhere = await sent({ to: token, data: transfer(payer.address, 1n) })
  // As a smart account does: another contract calls the token, and others send the transaction.
  const owner = await chain.account({ units: 12_500_000n, ether: 10n ** 18n })
  const batch: Hex = '0xcA11bde05977b3631167028862bE2a173976CA11'
  await chain.write(owner, 'approve', [batch, 12_500_000n])
  const abi = parseAbi([
    'struct Call { address target; bytes callData; }',
    'function tryAggregate(bool requireSuccess, Call[] calls) payable',
    'function transferFrom(address,address,uint256)',
  ])
  const pull = [owner.address, receiver.address, 6_250_000n] as const
  const callData = encodeFunctionData({ abi, functionName: 'transferFrom', args: pull })
  const args = [true, [1, 2].map(() => ({ target: token, callData }))] as const
  const data = encodeFunctionData({ abi, functionName: 'tryAggregate', args })
  const batched = await sent({ to: batch, data })
  await mine()
  t.match(await tell('base-usdc', batched), {
    status: 200,
    json: {
      creditedTransaction: { transactionQuantity: '12500000', transactionSenderAddress: owner.address },
    },
  })
  t.equal((await rig.service.balanceOf(owner.address))?.winc, '1532000000000', 'once for both transfers')
  t.match(await tell('base-eth', coin), {
    status: 200,
    json: { creditedTransaction: { winstonCreditAmount: '306400000000000' } },
  })
  t.match(await tell('base-eth', coin.toUpperCase().replace('0X', '0x')), {
    status: 200,
    json: { message: 'Transaction already credited' },
  })
  t.match(await tell('base-usdc', aimed), {
    status: 200,
    json: { creditedTransaction: { destinationAddress: alice } },
  })
  t.equal((await rig.service.balanceOf(alice))?.winc, '766000000000')
  t.equal((await rig.service.balanceOf(payer.address.toLowerCase()))?.winc, '306400000000000')
  t.equal((await tell('base-usdc', elsewhere)).status, 400, 'paid to somebody else')
  t.equal((await tell('base-usdc', coin)).status, 200, 'the same payment by another word is the same payment')
  t.equal((await rig.service.balanceOf(payer.address))?.winc, '306400000000000')
  t.equal((await tell('base-eth', `0x${'0'.repeat(64)}`)).status, 404)
  t.match(await tell('base-eth', 'x'), { status: 404, text: 'Transaction not found' }, 'no chain knows it')
  t.strictSame((await rig.ledger.check()).faults, [])
})
