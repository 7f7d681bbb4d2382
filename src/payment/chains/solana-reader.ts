import type { Clock } from '../../actor/clock.js'
import { JsonPeer } from '../../admission/json-peer.js'
import { decodeBase58 } from '../../format/base58.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { TokenName } from '../prices/rates.js'
import { beneficiaryIn, type ChainReader, type NoPayment, type SeenPayment } from './seen-payment.js'

export interface SolanaOptions {
  /** A node (Solana JSON-RPC over HTTP). */
  readonly url: string
  /** The wallet that is paid. */
  readonly wallet: string
  /** Mints of SPL tokens, by their names. */
  readonly mints: Readonly<Partial<Record<TokenName, string>>>
  readonly limitMs: number
}

type Fields = Readonly<Record<string, unknown>>

/** Payments in SOL and in SPL tokens: read from the balances of the transaction, not from its instructions. */
export class SolanaReader implements ChainReader {
  readonly chain = 'solana'
  readonly tokens: readonly TokenName[]
  readonly #peer: JsonPeer

  constructor(
    private readonly options: SolanaOptions,
    clock: Clock,
  ) {
    this.tokens = ['solana', 'ed25519', ...(Object.keys(options.mints) as TokenName[])]
    this.#peer = new JsonPeer({ url: options.url, connectionsMax: 8 }, clock)
  }

  async find(token: TokenName, id: string): Promise<SeenPayment | NoPayment | 'absent' | Refusal> {
    if (decodeBase58(id)?.length !== 64) return 'absent'
    const final = await this.#transaction(id, 'finalized')
    if (final === undefined) return this.#silent()
    const found = final ?? (await this.#transaction(id, 'confirmed'))
    if (found === undefined) return this.#silent()
    if (found === null) return 'absent'
    const paid = this.#paidIn(fieldsOf(found), token)
    if ('wrong' in paid) return paid
    const slot = fieldsOf(found).slot
    const height = typeof slot === 'number' ? { height: slot } : {}
    // A finalized transaction is never lost.
    return { ...paid, id, isFinal: final !== null, isBeyondWatching: final !== null, ...height }
  }

  close(): Promise<void> {
    return this.#peer.close()
  }

  #paidIn(
    found: Fields,
    token: TokenName,
  ): Omit<SeenPayment, 'id' | 'isFinal' | 'isBeyondWatching'> | NoPayment {
    const meta = fieldsOf(found.meta)
    if (meta.err !== null) return { wrong: 'The transaction has failed on its chain' }
    const message = fieldsOf(fieldsOf(found.transaction).message)
    const loaded = fieldsOf(meta.loadedAddresses)
    // Balances are those of the transaction's own accounts, and behind them of those that it names by lookup tables.
    const named = [message.accountKeys, loaded.writable, loaded.readonly].flatMap(listOf)
    const keys = named.map((key) => (typeof key === 'string' ? key : String(fieldsOf(key).pubkey)))
    const [sender] = keys
    if (sender === undefined) return { wrong: 'The transaction pays nobody' }
    const mint = this.options.mints[token]
    const quantity = mint === undefined ? this.#coins(keys, meta) : this.#tokens(mint, meta)
    if (quantity <= 0n) return { wrong: 'The transaction does not pay this service' }
    const beneficiary = beneficiaryIn(listOf(meta.logMessages).map(String).join('\n'))
    const aimed = beneficiary === undefined ? {} : { beneficiary }
    return { quantity, sender, recipient: this.options.wallet, ...aimed }
  }

  #coins(keys: readonly string[], meta: Fields): bigint {
    const at = keys.indexOf(this.options.wallet)
    const [before, after] = [listOf(meta.preBalances)[at], listOf(meta.postBalances)[at]]
    return isWhole(before) && isWhole(after) ? BigInt(after) - BigInt(before) : 0n
  }

  #tokens(mint: string, meta: Fields): bigint {
    const sum = (list: unknown): bigint =>
      listOf(list)
        .map(fieldsOf)
        .filter((one) => one.mint === mint && one.owner === this.options.wallet)
        .map((one) => String(fieldsOf(one.uiTokenAmount).amount))
        .reduce((total, amount) => total + (/^\d{1,39}$/.test(amount) ? BigInt(amount) : 0n), 0n)
    return sum(meta.postTokenBalances) - sum(meta.preTokenBalances)
  }

  #silent(): Refusal {
    return refuse('upstream', 'upstream', 'the node of solana does not answer')
  }

  /** Null: there is none at this level; undefined: no answer. */
  async #transaction(id: string, commitment: 'finalized' | 'confirmed'): Promise<unknown> {
    const params = [id, { commitment, encoding: 'json', maxSupportedTransactionVersion: 0 }]
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getTransaction', params })
    const answer = await this.#peer.ask('', body, this.options.limitMs)
    return 'why' in answer || answer.status !== 200 ? undefined : answer.body.result
  }
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
