/** Who is credited for a payment in a token of an EVM chain: the wallet whose tokens have moved, whoever sent the transaction. */
import t, { type Test } from 'tap'
import {
  encodeAbiParameters,
  encodeEventTopics,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  parseAbi,
  stringToHex,
  zeroAddress,
} from 'viem'
import { systemClock } from '../../../src/actor/clock.js'
import { EvmReader } from '../../../src/payment/chains/evm-reader.js'
import { paymentRig } from '../rig.js'
import { answeringServer } from './recorded-rpc.js'

const address = (digit: string): Hex => `0x${digit.repeat(40)}`
const [own, payer, other, sponsor] = [address('1'), address('2'), address('3'), address('4')]
const [token, otherToken, account] = [address('5'), address('6'), address('7')]
const friend = Buffer.alloc(32, 2).toString('base64url')
const id = `0x${'8'.repeat(64)}`
const units = 6_250_000n

interface Shown {
  readonly transaction: object
  /** Undefined: no block has it. */
  readonly logs?: readonly object[]
  readonly status?: string
  /** Of the payer; absent: a plain key. */
  readonly code?: Hex
}

/** A service whose chain has one transaction. */
async function scene(t: Test, shown: Shown) {
  const url = await answeringServer(t, ({ body }) => {
    const { method } = body as { method: string }
    const { transaction, logs, status = '0x1', code = '0x' } = shown
    const receipt = logs === undefined ? null : { blockNumber: '0x10', status, logs }
    const results: Record<string, unknown> = {
      eth_getTransactionByHash: {
        hash: id,
        value: '0x0',
        from: sponsor,
        to: account,
        input: '0x',
        ...transaction,
      },
      eth_getTransactionReceipt: receipt,
      eth_blockNumber: '0x100',
      eth_getCode: code,
    }
    return { jsonrpc: '2.0', id: 1, result: results[method] }
  })
  const contracts = { 'base-usdc': token }
  const facts = { chain: 'base', url, wallet: own, coins: ['base-eth'], contracts, confirmations: 3 } as const
  const reader = new EvmReader({ ...facts, limitMs: 60_000 }, systemClock)
  const rig = await paymentRig(t, { readers: [reader], addresses: { 'base-eth': own, 'base-usdc': own } })
  return {
    reader,
    tell: (name = 'base-usdc') => rig.post(`/v1/account/balance/${name}`, JSON.stringify({ tx_id: id })),
    credited: async () => (await rig.ledger.accounts('wallet:', '', 10)).map(({ name }) => name.slice(7)),
    winc: async (of: string) => (await rig.service.balanceOf(of))?.winc,
  }
}

const moved = (from: Hex, to: Hex, value = units, contract = token): object => ({
  address: contract,
  topics: encodeEventTopics({ abi: erc20Abi, eventName: 'Transfer', args: { from, to } }),
  data: encodeAbiParameters([{ type: 'uint256' }], [value]),
})
const authorized = (authorizer: Hex): object => ({
  address: token,
  topics: encodeEventTopics({
    abi: parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)']),
    args: { authorizer, nonce: `0x${'9'.repeat(64)}` },
  }),
  data: '0x',
})
const call = (to: Hex, value = units): Hex =>
  encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, value] })
const aim = stringToHex(`turboCreditDestinationAddress=${friend}`).slice(2)
const plain = { from: payer, to: token, input: `${call(own)}${aim}` }

const rows: readonly [what: string, shown: Shown, credited: string | undefined][] = [
  ['a plain transfer, for whom it names', { transaction: plain, logs: [moved(payer, own)] }, friend],
  ['sent by another', { transaction: {}, logs: [moved(payer, own)] }, payer],
  [
    'by a key with delegated code',
    { transaction: {}, logs: [moved(payer, own)], code: `0xef0100${'7'.repeat(40)}` },
    payer,
  ],
  [
    'by a contract, which has no key',
    { transaction: {}, logs: [moved(payer, own)], code: '0x6080' },
    undefined,
  ],
  [
    'beside an authorization of the same payer for somebody else',
    { transaction: {}, logs: [authorized(payer), moved(payer, other, 1n), moved(payer, own)] },
    payer,
  ],
  [
    'among other transfers',
    { transaction: {}, logs: [moved(payer, other), moved(other, payer), moved(payer, own)] },
    payer,
  ],
  [
    'in two transfers',
    { transaction: {}, logs: [moved(payer, own, 1n), moved(payer, own, units - 1n)] },
    payer,
  ],
  [
    'a text in the call of another contract names nobody',
    { transaction: { input: `0x765e827f${call(own).slice(2)}${aim}` }, logs: [moved(payer, own)] },
    payer,
  ],
  [
    'nor does one that another sends',
    { transaction: { ...plain, from: sponsor }, logs: [moved(payer, own)] },
    payer,
  ],
  ['of two wallets', { transaction: {}, logs: [moved(payer, own), moved(other, own, 1n)] }, undefined],
  ['tokens that are made', { transaction: {}, logs: [moved(zeroAddress, own)] }, undefined],
  ['from itself', { transaction: {}, logs: [moved(own, own)] }, undefined],
  ['of nothing', { transaction: {}, logs: [moved(payer, own, 0n)] }, undefined],
  ['to somebody else', { transaction: {}, logs: [moved(payer, other)] }, undefined],
  [
    'by the log of another contract',
    { transaction: {}, logs: [moved(payer, own, units, otherToken)] },
    undefined,
  ],
  ['one that has failed', { transaction: plain, logs: [moved(payer, own)], status: '0x0' }, undefined],
  ['a call without its log', { transaction: plain, logs: [] }, undefined],
  [
    'a payment by x402, which is credited where it is presented',
    { transaction: { to: token, input: '0xe3ee160e' }, logs: [authorized(payer), moved(payer, own)] },
    undefined,
  ],
  [
    'one by x402 that is settled together with a transfer of another wallet',
    { transaction: {}, logs: [authorized(other), moved(other, own), moved(payer, own)] },
    payer,
  ],
]

t.test('the wallet whose tokens moved is credited', async (t) => {
  for (const [what, shown, credited] of rows) {
    const { tell, credited: wallets, winc } = await scene(t, shown)
    const answers = [await tell(), await tell(), await tell('base-eth')]
    t.strictSame(await wallets(), credited === undefined ? [] : [credited], what)
    t.equal(answers[0]?.status, credited === undefined ? 400 : 200, what)
    if (credited !== undefined) t.equal(await winc(credited), '766000000000', `${what}: once`)
  }
})

t.test('of a smart account that is in no block yet nothing is known', async (t) => {
  const { tell, winc } = await scene(t, { transaction: {} })
  t.match(await tell(), { status: 404, text: 'Transaction not found' })
  const { tell: tellPlain } = await scene(t, { transaction: plain })
  t.match(await tellPlain(), { status: 202 }, 'a plain transfer is waited for')
  t.equal(await winc(payer), undefined)
})

t.test('coins of the service itself are no payment', async (t) => {
  const { tell, credited } = await scene(t, {
    transaction: { from: own, to: own, value: '0xde0b6b3a7640000' },
    logs: [],
  })
  t.match(await tell('base-eth'), { status: 400, text: /to itself/ })
  t.strictSame(await credited(), [])
})

t.test('a payment to the wallet that the settings named before is still one', async (t) => {
  const { reader } = await scene(t, { transaction: {}, logs: [moved(payer, other)] })
  t.match(await reader.find('base-usdc', id), { wrong: 'The token was not transferred' })
  t.match(await reader.find('base-usdc', id, other), { sender: payer, recipient: other, quantity: units })
})

t.test(
  'what a transaction paid in two tokens is credited in one, and the other is no known payment',
  async (t) => {
    const transaction = { from: payer, to: own, value: '0xde0b6b3a7640000' }
    const { tell } = await scene(t, { transaction, logs: [moved(other, own)] })
    t.equal((await tell('base-eth')).status, 200)
    t.match(await tell(), { status: 400, text: /recorded for what it paid in base-eth/ })
    t.equal((await tell('base-eth')).status, 200)
  },
)
