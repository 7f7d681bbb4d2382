import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import type { Test } from 'tap'
import type { PrivateKeyAccount } from 'viem/accounts'
import type { LocalChain } from './anvil.js'
import { type Call, serveWeb } from './web.js'

/** A facilitator made of the stock packages over a local chain. */
export interface StockFacilitator {
  readonly url: string
  readonly calls: string[]
  /** Runs before a call is answered; true: it answered. */
  before: ((call: Call, path: string) => Promise<boolean>) | undefined
  /** Runs when a call was done, before its answer is out; true: it answered. */
  after: ((call: Call, path: string) => Promise<boolean>) | undefined
}

/** Starts one that pays its gas with `relayer`. One key is one transaction at a time. */
export async function stockFacilitator(
  t: Test,
  chain: LocalChain,
  relayer: PrivateKeyAccount,
): Promise<StockFacilitator> {
  const client = chain.wallet(relayer)
  const signer = toFacilitatorEvmSigner({
    address: relayer.address,
    readContract: (args) => client.readContract({ ...args, args: args.args ?? [] } as never),
    verifyTypedData: (args) => client.verifyTypedData(args as never),
    writeContract: (args) => client.writeContract({ ...args, args: args.args ?? [] } as never),
    sendTransaction: (args) => client.sendTransaction(args as never),
    waitForTransactionReceipt: (args) => client.waitForTransactionReceipt(args),
    getCode: (args) => client.getCode(args),
  })
  const facilitator = registerExactEvmScheme(new x402Facilitator(), {
    signer,
    networks: chain.usdc.caip2 as `${string}:${string}`,
  })
  const self: StockFacilitator = { url: '', calls: [], before: undefined, after: undefined }
  let last: Promise<unknown> = Promise.resolve()
  const web = await serveWeb(t, async (call) => {
    const path = call.path.slice(1)
    self.calls.push(path)
    if (await self.before?.(call, path)) return
    if (path === 'supported') return call.json(200, facilitator.getSupported())
    const { paymentPayload, paymentRequirements } = JSON.parse(call.text)
    if (path === 'verify') {
      call.json(200, await facilitator.verify(paymentPayload, paymentRequirements))
      return
    }
    const settling = last.then(() => facilitator.settle(paymentPayload, paymentRequirements))
    last = settling.catch(() => 'told to its own caller')
    const settled = await settling
    if (!(await self.after?.(call, path))) call.json(200, settled)
  })
  return Object.assign(self, { url: web.url })
}
