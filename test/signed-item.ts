import { type ItemHeader, parseItemHeader } from '../src/format/item.js'
import { isRefusal } from '../src/format/refusal.js'
import { nativeAddress } from '../src/proof/owner-address.js'
import { type ItemSigner, signItem } from '../src/proof/sign.js'

/** The header of an item that this test has signed. Throws where its bytes are none. */
export function headerOf(item: Uint8Array): ItemHeader {
  const header = parseItemHeader(item)
  if (header === 'more' || isRefusal(header)) throw new Error('it is no item')
  return header
}

/** The wallet of a signer, as its network writes it. */
export function addressOf(signer: ItemSigner): string {
  const { signatureType, owner } = headerOf(signItem(signer, {}, Buffer.from('who')))
  return nativeAddress(signatureType, owner)
}
