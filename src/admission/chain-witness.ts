import type { Clock } from '../actor/clock.js'
import { type JsonFields, jsonFields } from '../format/json.js'
import type { PaymentOrder } from './cashier-messages.js'
import { JsonPeer } from './json-peer.js'
import { authorizationUsedTopic, transferTopic, type Usdc } from './usdc.js'

export interface WitnessOptions {
  /** A node of the chain (Ethereum JSON-RPC over HTTP). */
  readonly url: string
  readonly usdc: Usdc
  /** Receives the payments; lower case. */
  readonly wallet: string
  readonly limitMs: number
  /** Blocks, its own included, that make a payment final: what the chain can still drop has not moved. */
  readonly confirmations: number
}

/**
 * Hash of the transaction; `early`: it is not final yet; `no`: not yet; `never`: it has not moved, and cannot any more;
 * `unknown` where the chain cannot be reached.
 */
export type MovedOnChain = `0x${string}` | 'early' | 'no' | 'never' | 'unknown'

/** `requestedMs`: when its settlement was requested first, where that is known. */
export type WitnessedPayment = Pick<PaymentOrder, 'payment' | 'payer' | 'units' | 'validBefore'> & {
  readonly requestedMs?: number
}

/** Has this payment moved on chain? */
export interface Witness {
  moved(payment: WitnessedPayment): Promise<MovedOnChain>
}

/** Keccak-256 of AuthorizationCanceled(address,bytes32), EIP-3009. */
const canceledTopic = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81'

/** Selector of authorizationState(address,bytes32), EIP-3009: true of a nonce that was used or canceled. */
const stateSelector = '0xe94a0102'

/** Blocks that are searched in one request: no more than public nodes allow. Five hours at two seconds each. */
const blocksMax = 9000n
/** Requests of one search: three weeks. */
const searchesMax = 100n
/** The clock of the chain may differ from ours, and another gateway may have requested the payment a moment earlier. */
const marginSeconds = 3600
/** The longest validity of a payment that is taken: no payment began earlier than so long before its end. */
const validitySeconds = 24 * 3600

const hash = /^0x[0-9a-fA-F]{64}$/
const quantity = /^0x[0-9a-f]{1,16}$/i
const hexOf = (number: bigint): string => `0x${number.toString(16)}`
const topicOf = (address: string): string => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`

/**
 * Searches the chain for a payment whose facilitator's answer was lost, or whose authorization was submitted by somebody else. It
 * pays this wallet in both cases. Its nonce must be used, and the next log entry of the token must be the transfer of the amount
 * to this wallet. Any other entry of the transaction may belong to another payment, so a transfer could count twice. The token's
 * state shows first whether the nonce was used; the search for its transaction reaches back to where the payment began.
 */
export class ChainWitness implements Witness {
  readonly #peer: JsonPeer

  constructor(
    private readonly options: WitnessOptions,
    clock: Clock,
  ) {
    this.#peer = new JsonPeer({ url: options.url, connectionsMax: 4 }, clock)
  }

  async moved(order: WitnessedPayment): Promise<MovedOnChain> {
    const tip = await this.#block('latest')
    const isUsed = tip && (await this.#isUsed(order, tip))
    if (tip === undefined || isUsed === undefined) return 'unknown'
    if (!isUsed) return this.#unused(order, tip)
    const use = await this.#useOf(order, tip)
    if (use === undefined) return 'unknown'
    const paid = use.isCanceled ? 'no' : await this.#paid(order, use.transaction)
    // The log is there, so a node that has no receipt for it lags behind.
    if (paid === 'unknown' || paid === 'absent') return 'unknown'
    const isFinal = tip.number - use.block + 1n >= BigInt(this.options.confirmations)
    if (paid === 'no') return isFinal ? 'never' : 'no'
    return isFinal ? use.transaction : 'early'
  }

  /** Whether a transaction has moved the money of a payment. `no` where the chain does not know it, too. */
  async paidBy(
    payment: Pick<PaymentOrder, 'payment' | 'payer' | 'units'>,
    transaction: string,
  ): Promise<'yes' | 'no' | 'unknown'> {
    const paid = await this.#paid(payment, transaction)
    return paid === 'absent' ? 'no' : paid
  }

  async #paid(
    { payment, payer, units }: Pick<PaymentOrder, 'payment' | 'payer' | 'units'>,
    transaction: string,
  ): Promise<'yes' | 'no' | 'absent' | 'unknown'> {
    const answer = await this.#ask('eth_getTransactionReceipt', [transaction])
    if (answer === null) return 'absent'
    const receipt = jsonFields(answer)
    if (!Array.isArray(receipt.logs)) return 'unknown'
    const logs = receipt.logs.map(jsonFields)
    const wanted = [authorizationUsedTopic, topicOf(payer), nonceOf(payment)].join().toLowerCase()
    const at = logs.findIndex((log) => this.#isOf(log, wanted))
    const isPaid = receipt.status === '0x1' && at >= 0 && this.#pays(logs[at + 1] ?? {}, payer, units)
    return isPaid ? 'yes' : 'no'
  }

  close(): Promise<void> {
    return this.#peer.close()
  }

  /** Whether a nonce that was not used can be used yet: not where its validity ends before a block that the chain cannot drop. */
  async #unused({ validBefore }: WitnessedPayment, tip: Block): Promise<'no' | 'never' | 'unknown'> {
    if (tip.seconds < validBefore) return 'no'
    const depth = BigInt(this.options.confirmations) - 1n
    const final = depth > 0n && depth <= tip.number ? await this.#block(hexOf(tip.number - depth)) : tip
    if (final === undefined) return 'unknown'
    return final.seconds < validBefore ? 'no' : 'never'
  }

  /** Whether the nonce was used or canceled, as of that block. Undefined: the node does not state it. */
  async #isUsed({ payment, payer }: WitnessedPayment, { number }: Block): Promise<boolean | undefined> {
    const data = stateSelector + topicOf(payer).slice(2) + nonceOf(payment).slice(2)
    const answer = await this.#ask('eth_call', [{ to: this.options.usdc.address, data }, hexOf(number)])
    return typeof answer === 'string' && hash.test(answer) ? BigInt(answer) !== 0n : undefined
  }

  /** Where the nonce was used. Undefined: not found, so the node does not have all. */
  async #useOf(order: WitnessedPayment, tip: Block): Promise<Use | undefined> {
    const { payment, payer, validBefore, requestedMs } = order
    const begun = requestedMs === undefined ? validBefore - validitySeconds : requestedMs / 1000
    const start = await this.#lastBefore(begun - marginSeconds, tip)
    if (start === undefined) return undefined
    const { address } = this.options.usdc
    const topics = [[authorizationUsedTopic, canceledTopic], topicOf(payer), nonceOf(payment)]
    const end = start + searchesMax * blocksMax
    for (let from = start; from <= tip.number && from < end; from += blocksMax) {
      const last = from + blocksMax - 1n
      const span = { fromBlock: hexOf(from), toBlock: hexOf(last < tip.number ? last : tip.number) }
      const found = await this.#ask('eth_getLogs', [{ address, topics, ...span }])
      if (!Array.isArray(found)) return undefined
      if (found.length > 0) return useIn(jsonFields(found[0]))
    }
    return undefined
  }

  /** Number of a block before that time (seconds), of those not more than `blocksMax` blocks before the last one. */
  async #lastBefore(seconds: number, tip: Block): Promise<bigint | undefined> {
    let [low, high] = [0n, tip.number]
    for (let reach = blocksMax; reach < tip.number; reach *= 2n) {
      const block = await this.#block(hexOf(tip.number - reach))
      if (block === undefined) return undefined
      if (block.seconds < seconds) {
        low = block.number
        break
      }
      high = block.number
    }
    while (high - low > blocksMax) {
      const block = await this.#block(hexOf((low + high) / 2n))
      if (block === undefined) return undefined
      if (block.seconds < seconds) low = block.number
      else high = block.number
    }
    return low
  }

  async #block(which: string): Promise<Block | undefined> {
    const { number, timestamp } = jsonFields(await this.#ask('eth_getBlockByNumber', [which, false]))
    const isWhole = [number, timestamp].every((value) => quantity.test(String(value)))
    const isRight = which === 'latest' || which === String(number).toLowerCase()
    return isWhole && isRight ? { number: BigInt(String(number)), seconds: Number(timestamp) } : undefined
  }

  #pays(log: JsonFields, payer: string, units: string): boolean {
    const { data } = log
    const amount = typeof data === 'string' && hash.test(data) && BigInt(data) === BigInt(units)
    return amount && this.#isOf(log, [transferTopic, topicOf(payer), topicOf(this.options.wallet)].join())
  }

  /** Whether a log entry is of the token and has these topics. */
  #isOf({ address, topics }: JsonFields, wanted: string): boolean {
    const isToken = String(address).toLowerCase() === this.options.usdc.address.toLowerCase()
    return isToken && Array.isArray(topics) && topics.join().toLowerCase() === wanted
  }

  async #ask(method: string, params: readonly unknown[]): Promise<unknown> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const answer = await this.#peer.ask('', body, this.options.limitMs)
    return 'why' in answer ? undefined : answer.body.result
  }
}

interface Block {
  readonly number: bigint
  /** Its time by the chain, in seconds. */
  readonly seconds: number
}

interface Use {
  readonly transaction: `0x${string}`
  readonly block: bigint
  readonly isCanceled: boolean
}

function useIn({ transactionHash, blockNumber, topics }: JsonFields): Use | undefined {
  if (typeof transactionHash !== 'string' || !hash.test(transactionHash)) return undefined
  if (typeof blockNumber !== 'string' || !quantity.test(blockNumber)) return undefined
  const isCanceled = Array.isArray(topics) && String(topics[0]).toLowerCase() === canceledTopic
  return { transaction: transactionHash as `0x${string}`, block: BigInt(blockNumber), isCanceled }
}

const nonceOf = (payment: string): string => payment.slice(payment.lastIndexOf(':') + 1).toLowerCase()
