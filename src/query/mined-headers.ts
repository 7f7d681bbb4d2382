import type { Requester } from '../actor/requester.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import type { Chain } from '../chain/chain.js'
import { type Id, idBytes } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { ownerOf } from '../proof/transaction-proof.js'
import type { HeaderSource, SignedHeader } from './headers.js'

/**
 * Requests from nodes the headers of transactions that nothing here has: an index that was filled from bands keeps no
 * signatures. The answers are verified against the id. Nodes have no data items, so only transactions are requested.
 */
export class MinedHeaders implements HeaderSource {
  constructor(
    private readonly known: HeaderSource,
    private readonly index: Pick<ChainIndex, 'row'>,
    private readonly chain: Pick<Chain, 'transaction'>,
  ) {}

  async header(id: Id, given?: Row, requester?: Requester): Promise<SignedHeader | Refusal> {
    const known = await this.known.header(id)
    if (!isRefusal(known) || known.refused !== 'unknown') return known
    const row = given ?? this.index.row(idBytes(id), false)
    if (row === undefined || row.isItem || row.height === undefined) return known
    const mined = await this.chain.transaction(id, { signed: false, ...requester })
    return isRefusal(mined) ? mined : { signature: mined.signature, owner: ownerOf(mined) }
  }
}
