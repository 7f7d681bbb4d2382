import type { Clock } from '../../actor/clock.js'
import { JsonPeer } from '../../admission/json-peer.js'
import { decodeBase58 } from '../../format/base58.js'
import { jsonFields } from '../../format/json.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { TokenName } from '../prices/rates.js'
import type { ChainReader, NoPayment, SeenPayment } from './seen-payment.js'
import { solanaPayment } from './solana-payment.js'

export interface SolanaOptions {
  /** A node (Solana JSON-RPC over HTTP). */
  readonly url: string
  /** The wallet that is paid. */
  readonly wallet: string
  /** Mints of SPL tokens, by their names. */
  readonly mints: Readonly<Partial<Record<TokenName, string>>>
  readonly limitMs: number
}

/** Payments in SOL and in SPL tokens. */
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

  async find(
    token: TokenName,
    id: string,
    wallet = this.options.wallet,
  ): Promise<SeenPayment | NoPayment | 'absent' | Refusal> {
    if (decodeBase58(id)?.length !== 64) return 'absent'
    const final = await this.#transaction(id, 'finalized')
    if (final === undefined) return this.#silent()
    const found = final ?? (await this.#transaction(id, 'confirmed'))
    if (found === undefined) return this.#silent()
    if (found === null) return 'absent'
    const paid = solanaPayment(jsonFields(found), wallet, this.options.mints[token])
    if ('wrong' in paid) return final === null ? { wrong: paid.wrong } : paid
    const slot = jsonFields(found).slot
    const height = typeof slot === 'number' ? { height: slot } : {}
    // A finalized transaction is never lost.
    return {
      ...paid,
      id,
      recipient: wallet,
      isFinal: final !== null,
      isBeyondWatching: final !== null,
      ...height,
    }
  }

  close(): Promise<void> {
    return this.#peer.close()
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
