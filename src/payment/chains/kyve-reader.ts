import type { Clock } from '../../actor/clock.js'
import { JsonPeer } from '../../admission/json-peer.js'
import { type JsonFields, jsonFields } from '../../format/json.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { beneficiaryIn, type ChainReader, type NoPayment, type SeenPayment } from './seen-payment.js'

export interface KyveOptions {
  /** A node: the REST interface of the Cosmos SDK. */
  readonly url: string
  readonly limitMs: number
}

const hashShape = /^[0-9A-Fa-f]{64}$/
const sendType = '/cosmos.bank.v1beta1.MsgSend'
const coin = 'ukyve'

/** Payments in KYVE. A block there is final as soon as it is made (Tendermint), so that there is nothing to wait for. */
export class KyveReader implements ChainReader {
  readonly chain = 'kyve'
  readonly tokens = ['kyve'] as const
  readonly #peer: JsonPeer

  constructor(
    private readonly options: KyveOptions,
    clock: Clock,
  ) {
    this.#peer = new JsonPeer({ url: options.url, connectionsMax: 4 }, clock)
  }

  async find(_token: string, id: string): Promise<SeenPayment | NoPayment | 'absent' | Refusal> {
    if (!hashShape.test(id)) return 'absent'
    const hash = id.toUpperCase()
    const answer = await this.#peer.ask(`/cosmos/tx/v1beta1/txs/${hash}`, undefined, this.options.limitMs)
    if ('why' in answer) return silent
    // Nodes answer 404 or 400 with a text of their own, where there is none.
    const isUnknown = answer.status === 404 || /not found/i.test(String(answer.body.message))
    if (isUnknown) return 'absent'
    if (answer.status !== 200) return silent
    const { tx_response: txResponse, tx } = answer.body
    const response = jsonFields(txResponse)
    if (String(response.txhash).toUpperCase() !== hash) return silent
    if (response.code !== 0) return { wrong: 'The transaction has failed on its chain' }
    const paid = paidIn(jsonFields(jsonFields(tx).body))
    if ('wrong' in paid) return paid
    const height = /^\d{1,15}$/.test(String(response.height)) ? { height: Number(response.height) } : {}
    return { ...paid, id: hash, isFinal: true, isBeyondWatching: true, ...height }
  }

  close(): Promise<void> {
    return this.#peer.close()
  }
}

const silent = refuse('upstream', 'upstream', 'the node of kyve does not answer')

/** One message that sends coins, and nothing else: who of several would be credited? */
function paidIn({
  messages,
  memo,
}: JsonFields): Omit<SeenPayment, 'id' | 'isFinal' | 'isBeyondWatching'> | NoPayment {
  const [message, ...others] = Array.isArray(messages) ? messages.map(jsonFields) : []
  if (message?.['@type'] !== sendType || others.length > 0)
    return { wrong: 'The transaction is no transfer of KYVE' }
  const { from_address: sender, to_address: recipient, amount } = message
  const coins = (Array.isArray(amount) ? amount.map(jsonFields) : []).filter(({ denom }) => denom === coin)
  const text = String(coins[0]?.amount)
  if (
    typeof sender !== 'string' ||
    typeof recipient !== 'string' ||
    coins.length !== 1 ||
    !/^\d{1,39}$/.test(text)
  )
    return { wrong: 'The transaction is no transfer of KYVE' }
  const beneficiary = beneficiaryIn(typeof memo === 'string' ? memo.slice(0, 1000) : '')
  const named = beneficiary === undefined ? {} : { beneficiary }
  return { quantity: BigInt(text), sender, recipient, ...named }
}
