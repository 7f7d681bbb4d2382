/** A payment has moved when the chain cannot drop it any more. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { ChainWitness } from '../../src/admission/chain-witness.js'
import { SharedSettlement } from '../../src/admission/shared-settlement.js'
import { usdcOf } from '../../src/admission/usdc.js'

const usdc = usdcOf['base-sepolia']
const [payer, wallet] = [`0x${'a1'.repeat(20)}`, `0x${'b2'.repeat(20)}`] as const
const transaction = `0x${'12'.repeat(32)}`
const nonce = `0x${'34'.repeat(32)}`
const none = async (): Promise<undefined> => undefined
const padded = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`
const logs = [
  {
    address: usdc.address,
    topics: ['0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5', padded(payer), nonce],
  },
  {
    address: usdc.address,
    topics: [
      '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
      padded(payer),
      padded(wallet),
    ],
    data: `0x${(1000).toString(16).padStart(64, '0')}`,
  },
].map((log) => ({ ...log, transactionHash: transaction, blockNumber: '0x64' }))

t.test('a payment in a block that is not final has not moved yet', async (t) => {
  let tip = 0x64
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (piece: Buffer) => {
      text += piece.toString()
    })
    request.on('end', () => {
      const { method } = JSON.parse(text) as { method: string }
      const results: Record<string, unknown> = {
        eth_blockNumber: `0x${tip.toString(16)}`,
        eth_getLogs: logs.slice(0, 1),
        eth_getTransactionReceipt: { status: '0x1', blockNumber: '0x64', logs },
      }
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: results[method] }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const witness = new ChainWitness({ url, usdc, wallet, limitMs: 2000, confirmations: 3 }, systemClock)
  t.teardown(() => witness.close())
  const order = { payment: `84532:${payer}:${nonce}`, payer, units: '1000' }
  const shared = new SharedSettlement({
    witness,
    claims: { house: async () => 'house', ask: none, clear: none, look: async () => 'left' },
    clock: systemClock,
    log: silentLog,
  })
  for (tip of [0x64, 0x65]) {
    t.equal(await witness.moved(order), 'early')
    t.equal(await shared.taken(order), 'asked', 'who has asked waits')
  }
  tip = 0x66
  t.equal(await witness.moved(order), transaction)
  t.equal(await shared.taken(order), transaction)
  t.equal(await witness.moved({ ...order, units: '1001' }), 'no')
})
