import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { getAddress, type Hex, recoverTypedDataAddress } from 'viem'
import { type Call, serveWeb } from './web.js'

const fields = 'from address,to address,value uint256,validAfter uint256,validBefore uint256,nonce bytes32'
export const transferTypes = {
  TransferWithAuthorization: fields.split(',').map((field) => {
    const [name = '', type = ''] = field.split(' ')
    return { name, type }
  }),
}

/** Answers a call instead of the facilitator; false: let it answer. */
export type Script = (call: Call) => boolean | Promise<boolean>

interface Message {
  readonly x402Version: number
  readonly paymentPayload: {
    readonly network?: string
    readonly accepted?: { readonly network: string }
    readonly payload: {
      readonly signature: Hex
      readonly authorization: Readonly<
        Record<'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', string>
      >
    }
  }
  readonly paymentRequirements: {
    readonly network: string
    readonly asset: string
    readonly payTo: string
    readonly amount?: string
    readonly maxAmountRequired?: string
    readonly extra: { readonly name: string; readonly version: string }
  }
}

/** A facilitator without a chain: balances in memory, signatures really checked, and any fault that a test writes. */
export interface ScriptedFacilitator {
  readonly url: string
  readonly balances: Map<string, bigint>
  /** Transactions of nonces that were used, by payer (lower case) and nonce. */
  readonly used: ReadonlyMap<string, string>
  /** Paths in the order in which they were called. */
  readonly calls: string[]
  readonly headers: Call['headers'][]
  readonly messages: Message[]
  verify: Script | undefined
  settle: Script | undefined
  supported: Script | undefined
  /** The money has moved; the answer is not out yet. */
  afterSettle: Script | undefined
  /** Settles again what it settled before with the same answer, as one that keeps accounts would. */
  remembers: boolean
  count(path: string): number
  close(): Promise<void>
}

const chainIds: Readonly<Record<string, number>> = {
  'base-sepolia': 84532,
  base: 8453,
  'eip155:84532': 84532,
  'eip155:8453': 8453,
}

async function faultOf(given: Message, used: Map<string, string>, balances: Map<string, bigint>) {
  const { paymentPayload, paymentRequirements: terms } = given
  const { authorization: a, signature } = paymentPayload.payload
  const network = paymentPayload.network ?? paymentPayload.accepted?.network ?? ''
  const chainId = chainIds[network]
  if (network !== terms.network || chainId === undefined) return 'invalid_network'
  const numbers = {
    value: BigInt(a.value),
    validAfter: BigInt(a.validAfter),
    validBefore: BigInt(a.validBefore),
  }
  const signer = await recoverTypedDataAddress({
    domain: { ...terms.extra, chainId, verifyingContract: terms.asset as Hex },
    types: transferTypes,
    primaryType: 'TransferWithAuthorization',
    message: { ...a, ...numbers },
    signature,
  })
  if (signer !== getAddress(a.from)) return 'invalid_exact_evm_payload_signature'
  if (getAddress(a.to) !== getAddress(terms.payTo)) return 'invalid_exact_evm_payload_recipient_mismatch'
  if (a.value !== (terms.amount ?? terms.maxAmountRequired)) return 'invalid_exact_evm_authorization_value'
  if (used.has(a.from.toLowerCase() + a.nonce)) return 'invalid_exact_evm_nonce_already_used'
  const left = balances.get(a.from.toLowerCase()) ?? 0n
  return left < numbers.value ? 'insufficient_funds' : undefined
}

export async function scriptedFacilitator(t: Test): Promise<ScriptedFacilitator> {
  const balances = new Map<string, bigint>()
  const used = new Map<string, string>()
  const self: ScriptedFacilitator = {
    url: '',
    balances,
    used,
    calls: [],
    headers: [],
    messages: [],
    verify: undefined,
    settle: undefined,
    supported: undefined,
    afterSettle: undefined,
    remembers: false,
    count: (path) => self.calls.filter((one) => one === path).length,
    close: async () => undefined,
  }
  const settle = async (call: Call, message: Message): Promise<void> => {
    const { from, to, value, nonce } = message.paymentPayload.payload.authorization
    const key = from.toLowerCase() + nonce
    const { network } = message.paymentRequirements
    const before = used.get(key)
    const settled = (transaction: string) => ({ success: true, transaction, network, payer: from })
    if (before !== undefined && self.remembers) return call.json(200, settled(before))
    const fault = await faultOf(message, used, balances)
    const failed = { success: false, errorReason: fault, transaction: '', network, payer: from }
    if (fault !== undefined) return call.json(200, failed)
    const transaction = `0x${randomBytes(32).toString('hex')}`
    used.set(key, transaction)
    for (const [whose, by] of [
      [from, -BigInt(value)],
      [to, BigInt(value)],
    ] as const) {
      balances.set(whose.toLowerCase(), (balances.get(whose.toLowerCase()) ?? 0n) + by)
    }
    if (await self.afterSettle?.(call)) return undefined
    return call.json(200, settled(transaction))
  }
  const web = await serveWeb(t, async (call) => {
    const path = call.path.slice(call.path.lastIndexOf('/') + 1)
    self.calls.push(path)
    self.headers.push(call.headers)
    if (path === 'supported') {
      if (await self.supported?.(call)) return
      const kinds = [1, 2].flatMap((x402Version) =>
        Object.keys(chainIds)
          .filter((network) => network.includes(':') === (x402Version === 2))
          .map((network) => ({ x402Version, scheme: 'exact', network })),
      )
      call.json(200, { kinds, extensions: [], signers: {} })
      return
    }
    const message = JSON.parse(call.text) as Message
    self.messages.push(message)
    if (path === 'verify' ? await self.verify?.(call) : await self.settle?.(call)) return
    if (path === 'settle') return settle(call, message)
    const payer = message.paymentPayload.payload.authorization.from
    const fault = await faultOf(message, used, balances)
    call.json(
      200,
      fault === undefined ? { isValid: true, payer } : { isValid: false, invalidReason: fault, payer },
    )
  })
  return Object.assign(self, { url: web.url, close: web.close })
}
