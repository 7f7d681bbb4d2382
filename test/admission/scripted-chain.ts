import type { Test } from 'tap'
import {
  decodeFunctionData,
  encodeAbiParameters,
  encodeEventTopics,
  erc20Abi,
  type Hex,
  parseAbi,
} from 'viem'
import { type Usdc, usdcOf } from '../../src/admission/usdc.js'
import { answeringServer } from '../payment/chains/recorded-rpc.js'

const abi = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
])
/** What public nodes allow in one request. */
const spanMax = 10_000

/** A nonce of USDC that was used, or canceled. */
export interface NonceUse {
  readonly from: string
  readonly nonce: string
  readonly to: Hex
  readonly units: bigint
  readonly transaction: string
  readonly block: number
  readonly isCanceled?: boolean
}

/** What a node knows. Its blocks are two seconds apart, and the first one has the time `genesis` (s). */
export interface ChainScript {
  readonly genesis: number
  tip(): number
  uses(): readonly NonceUse[]
  /** True: the node has no receipts yet. */
  lags?(): boolean
}

/** Number of the last block at that time. */
export const blockAt = (genesis: number, ms: number): number => Math.floor((ms / 1000 - genesis) / 2)

const address: Hex = usdcOf['base-sepolia'].address as Hex
const hex = (value: number): Hex => `0x${value.toString(16)}`

function logsOf({ from, nonce, to, units, isCanceled }: NonceUse): { topics: unknown }[] {
  const args = { authorizer: from as Hex, nonce: nonce as Hex }
  const eventName = isCanceled === true ? 'AuthorizationCanceled' : 'AuthorizationUsed'
  const topics = encodeEventTopics({ abi, eventName, args })
  const moved = encodeEventTopics({ abi: erc20Abi, eventName: 'Transfer', args: { from: from as Hex, to } })
  const paid = { address, topics: moved, data: encodeAbiParameters([{ type: 'uint256' }], [units]) }
  return [{ address, topics, data: '0x' } as { topics: unknown }, ...(isCanceled === true ? [] : [paid])]
}

/** Whether a log has the topics of a filter, of which each is a value or several. */
function isWanted(topics: unknown, wanted: readonly (string | readonly string[])[]): boolean {
  const has = (topics as string[]).map((topic) => topic.toLowerCase())
  return wanted.every((one, at) => [one].flat().some((value) => value.toLowerCase() === has[at]))
}

function answerOf(script: ChainScript, method: string, params: readonly unknown[]): unknown {
  const uses = script.uses().filter(({ block }) => block <= script.tip())
  if (method === 'eth_blockNumber') return hex(script.tip())
  if (method === 'eth_getBlockByNumber') {
    const number = params[0] === 'latest' ? script.tip() : Number(params[0])
    return number > script.tip() ? null : { number: hex(number), timestamp: hex(script.genesis + 2 * number) }
  }
  if (method === 'eth_call') {
    const { data } = params[0] as { data: Hex }
    const { args = [] } = decodeFunctionData({ abi, data })
    const [from, nonce] = (args as readonly string[]).map((word) => word.toLowerCase())
    const isUsed = uses.some((use) => use.from.toLowerCase() === from && use.nonce.toLowerCase() === nonce)
    return encodeAbiParameters([{ type: 'bool' }], [isUsed])
  }
  if (method === 'eth_getLogs') {
    const { fromBlock, toBlock, topics } = params[0] as {
      fromBlock: string
      toBlock: string
      topics: string[]
    }
    const [from, to] = [Number(fromBlock), toBlock === 'latest' ? script.tip() : Number(toBlock)]
    if (to - from >= spanMax) return undefined
    return uses
      .filter((use) => use.block >= from && use.block <= to && isWanted(logsOf(use)[0]?.topics, topics))
      .map((use) => ({ ...logsOf(use)[0], transactionHash: use.transaction, blockNumber: hex(use.block) }))
  }
  const use = uses.find(({ transaction }) => transaction === params[0])
  return use === undefined || script.lags?.() === true ? null : { status: '0x1', logs: logsOf(use) }
}

/** A node (Ethereum JSON-RPC) of a chain that consists of uses of nonces. `calls`: the methods that were requested. */
export async function scriptedChain(
  t: Test,
  script: ChainScript,
): Promise<{ readonly url: string; readonly usdc: Usdc; readonly calls: string[] }> {
  const calls: string[] = []
  const url = await answeringServer(t, ({ body }) => {
    const { id, method, params } = body as { id: number; method: string; params: readonly unknown[] }
    calls.push(method)
    return { jsonrpc: '2.0', id, result: answerOf(script, method, params) }
  })
  return { url, usdc: usdcOf['base-sepolia'], calls }
}
