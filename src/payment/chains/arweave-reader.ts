import type { Chain } from '../../chain/chain.js'
import { encodeBase64url } from '../../format/base64url.js'
import { type Id, parseId } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Transaction } from '../../format/transaction.js'
import { nativeAddress, normalizedAddress } from '../../proof/owner-address.js'
import { isBoundById, ownerOf, recoveredKey } from '../../proof/transaction-proof.js'
import { type ChainReader, depthsOf, type NoPayment, type SeenPayment } from './seen-payment.js'

type ArweaveNodes = Pick<Chain, 'transaction' | 'agreedTransaction' | 'pendingTransaction' | 'agreedStatus'>

const beneficiaryTag = 'Turbo-Credit-Destination-Address'

/**
 * Payments in AR. Ids and signatures of transactions are checked here, so a node cannot make one up. A transaction without a
 * block may be mined with other fields, and the same id (`isBoundById`): what is seen then counts, as several nodes have it.
 */
export class ArweaveReader implements ChainReader {
  readonly chain = 'arweave'
  readonly tokens = ['arweave'] as const

  constructor(
    private readonly nodes: ArweaveNodes,
    private readonly confirmations: number,
  ) {}

  async find(_token: string, text: string): Promise<SeenPayment | NoPayment | 'absent' | Refusal> {
    const id = parseId(text)
    if (id === undefined) return 'absent'
    const status = await this.nodes.agreedStatus(id)
    if (isRefusal(status)) return status.refused === 'unknown' ? 'absent' : status
    // A node is behind, or lies: what is credited stays, and what waits goes on waiting.
    if (status.kind === 'pending' && status.isContested === true)
      return refuse('upstream', 'upstream', `nodes contradict each other about the block of ${id}`)
    const isMined = status.kind === 'mined'
    const found = await (isMined ? this.#mined(id) : this.nodes.pendingTransaction(id))
    if (isRefusal(found)) return found.refused === 'unknown' ? 'absent' : found
    const depths = depthsOf(isMined ? status.confirmations : 0, this.confirmations)
    return { ...paymentIn(found), ...depths, ...(isMined ? { height: status.height } : {}) }
  }

  async #mined(id: Id): Promise<Transaction | Refusal> {
    const one = await this.nodes.transaction(id)
    if (isRefusal(one) || one.quantity === 0n || isBoundById(one)) return one
    return this.nodes.agreedTransaction(id)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function paymentIn(tx: Transaction): Omit<SeenPayment, 'isFinal' | 'isBeyondWatching'> {
  const { id, target, quantity, tags } = tx
  const named = tags.find((tag) => Buffer.from(tag.name).toString() === beneficiaryTag)
  const beneficiary = named === undefined ? {} : { beneficiary: Buffer.from(named.value).toString() }
  const key = recoveredKey(tx)
  return {
    id,
    quantity,
    sender: normalizedAddress(ownerOf(tx)),
    // No data item can be signed as that address: items of this key are of type 3.
    ...(key === undefined ? {} : { account: nativeAddress(3, key) }),
    recipient: encodeBase64url(target),
    ...beneficiary,
  }
}
