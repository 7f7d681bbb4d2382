/** Payments in USDC by x402 against their chain: receipts as a node gives them, by what the facilitator has settled. */
import t from 'tap'
import { encodeAbiParameters, encodeEventTopics, erc20Abi, type Hex, parseAbi } from 'viem'
import { usdcOf } from '../../../src/admission/usdc.js'
import { newAccount, payee } from '../../admission/scene.js'
import { scriptedFacilitator } from '../../admission/scripted-facilitator.js'
import { payment } from '../../admission/shop.js'
import { answeringServer } from '../chains/recorded-rpc.js'
import { paymentRig } from '../rig.js'

const wallet = `${'W'.repeat(42)}A`
const dayMs = 24 * 3600_000
const usedAbi = parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'])

interface Paid {
  readonly from: Hex
  readonly nonce: Hex
  readonly value: bigint
}

/** What eth_getTransactionReceipt says of a settled authorization: the two log entries of USDC. */
function receiptOf({ from, nonce, value }: Paid, to: Hex = payee): object {
  const { address } = usdcOf['base-sepolia']
  const used = encodeEventTopics({ abi: usedAbi, args: { authorizer: from, nonce } })
  const moved = encodeEventTopics({ abi: erc20Abi, eventName: 'Transfer', args: { from, to } })
  const data = encodeAbiParameters([{ type: 'uint256' }], [value])
  return {
    status: '0x1',
    logs: [
      { address, topics: used, data: '0x' },
      { address, topics: moved, data },
    ],
  }
}

t.test('each payment is looked up on its chain, and what was settled must be credited', async (t) => {
  const receipts = new Map<string, object | null>()
  let isDown = false
  const url = await answeringServer(t, ({ body }) => {
    if (isDown) return 503
    const { id, method, params } = body as { id: number; method: string; params: [string] }
    const result = method === 'eth_getTransactionReceipt' ? (receipts.get(params[0]) ?? null) : undefined
    return { jsonrpc: '2.0', id, result }
  })
  const facilitator = await scriptedFacilitator(t)
  const payer = newAccount()
  facilitator.balances.set(payer.address.toLowerCase(), 100_000_000n)
  const rig = await paymentRig(t, {
    x402: {
      network: 'base-sepolia',
      wallet: payee.toLowerCase(),
      facilitatorUrl: facilitator.url,
      rpc: { url, confirmations: 5 },
      // A client whose payment is in doubt is answered after `verifyMs`, which one of those below waits for.
      protocol: 'http',
      verifyMs: 6000,
      settleMs: 30_000,
    },
  })
  // Facilitators go by the time of day.
  const start = Date.now()
  rig.setTime(start)
  const [today = '', tomorrow = ''] = [0, dayMs].map((ms) => new Date(start + ms).toISOString().slice(0, 10))
  const pay = async (value: bigint): Promise<{ readonly transaction: string; readonly paid: Paid }> => {
    const headers = await payment(payer, 1, { to: payee, value: String(value) })
    const { authorization } = (
      JSON.parse(Buffer.from(Object.values(headers)[0] ?? '', 'base64').toString()) as {
        payload: { authorization: { nonce: Hex } }
      }
    ).payload
    const { json } = await rig.post(`/v1/x402/top-up/arweave/${wallet}`, '', headers)
    const { txHash = '' } = json as Record<string, string>
    t.match(txHash, /^0x[0-9a-f]{64}$/)
    return { transaction: txHash, paid: { from: payer.address, nonce: authorization.nonce, value } }
  }
  const right = await pay(5_000_000n)
  const less = await pay(6_000_000n)
  const elsewhere = await pay(7_000_000n)
  const failed = await pay(8_000_000n)
  const gone = await pay(9_000_000n)
  receipts.set(right.transaction, receiptOf(right.paid))
  receipts.set(less.transaction, receiptOf({ ...less.paid, value: 1n }))
  receipts.set(elsewhere.transaction, receiptOf(elsewhere.paid, newAccount().address))
  receipts.set(failed.transaction, { ...receiptOf(failed.paid), status: '0x0' })
  // One that the facilitator took and never answered for.
  facilitator.afterSettle = ({ response }) => {
    response.destroy()
    return true
  }
  const lost = await payment(payer, 1, { to: payee, value: '4000000' })
  t.not((await rig.post(`/v1/x402/top-up/arweave/${wallet}`, '', lost)).status, 200)

  rig.setTime(Date.parse(tomorrow) + 3 * 3600_000)
  isDown = true
  const { differences: early, ...silent } = await rig.service.reconciler.compare(today)
  t.match(silent, { usdc: 6, unchecked: 5 })
  t.strictSame(
    early.map(({ why }) => why),
    ['its settlement has not ended'],
  )
  isDown = false
  const { differences, ...row } = await rig.service.reconciler.compare(today)
  t.match(row, { usdc: 6, unchecked: 0, cards: 0, chains: 0 })
  const shown = differences.map(({ what, id, why }) => `${what} ${id.split(':').at(-1)} ${why}`)
  const wanted = [less, elsewhere, failed, gone].map(
    ({ paid, transaction }) =>
      `x402 ${paid.nonce} credited here, and its chain does not have it in ${transaction}`,
  )
  t.strictSame(shown.filter((one) => one.includes('chain')).sort(), wanted.sort())
  t.equal(differences.length, 5)
  t.match(await rig.service.reconciler.compare(tomorrow), { usdc: 0, differences: [] }, 'another day')
})
