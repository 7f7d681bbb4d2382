import type { Catalog } from '../catalog/catalog-messages.js'
import { type Id, idOfBytes } from '../format/id.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { sha256 } from '../proof/digest.js'
import type { HeaderSource, SignedHeader } from './headers.js'

/** Signatures and keys out of the headers that the catalog learned with each transaction and item. */
export class LearnedHeaders implements HeaderSource {
  constructor(private readonly catalog: Catalog) {}

  header(id: Id): Promise<SignedHeader | Refusal> {
    const header = this.catalog.attributes(id)?.header
    const found = header !== undefined && header.signature.length > 0
    if (!found) return Promise.resolve(refuse('unknown', 'self', 'the header was not read yet'))
    if (idOfBytes(sha256(header.signature)) !== id) {
      return Promise.resolve(refuse('forged', 'self', 'the signature on record is another one'))
    }
    return Promise.resolve({ signature: header.signature, owner: header.owner })
  }
}
