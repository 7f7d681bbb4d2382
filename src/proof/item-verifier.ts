import { type ItemHeader, parseItemHeader } from '../format/item.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { beginList, deepHash, StreamedDeepHash } from './deep-hash.js'
import { verifySignature } from './signature-verifiers.js'

/** What of an item's header is signed. */
export type SignedItemFields = Pick<ItemHeader, 'signatureType' | 'owner' | 'target' | 'anchor' | 'rawTags'>

/** All that an item signs but the payload. The tags are signed as the bytes that stand in the item. */
function leading(header: SignedItemFields): Uint8Array[] {
  return [...kind(header.signatureType), header.owner, header.target, header.anchor, header.rawTags]
}

/** The elements that all items of a signature type share. */
function kind(signatureType: number): Uint8Array[] {
  return [Buffer.from('dataitem'), Buffer.from('1'), Buffer.from(signatureType.toString())]
}

/** The accumulator after the elements that all items of a signature type share, computed once for each type. */
const begun = new Map<number, Uint8Array>()

function begin(signatureType: number): Uint8Array {
  const known = begun.get(signatureType)
  if (known !== undefined) return known
  const elements = kind(signatureType)
  const hashed = beginList(elements.length + 5, elements)
  begun.set(signatureType, hashed)
  return hashed
}

/** The message that an item signs: a deep hash, 48 bytes. */
export function itemMessage(header: SignedItemFields, payload: Uint8Array): Uint8Array {
  return deepHash([...leading(header), payload])
}

/** Verifies one item whose payload arrives in pieces: holds none of it. */
export class ItemVerifier {
  readonly #message: StreamedDeepHash

  constructor(readonly header: ItemHeader) {
    const { owner, target, anchor, rawTags } = header
    this.#message = new StreamedDeepHash([owner, target, anchor, rawTags], begin(header.signatureType))
  }

  /** Takes the next bytes of the payload. */
  update(bytes: Uint8Array): void {
    this.#message.update(bytes)
  }

  /** What the owner must have signed, 48 bytes. Either this or `finish`, once, after the last byte. */
  message(): Uint8Array {
    return this.#message.digest()
  }

  /** True where the owner signed header and payload, else why not (forged). Once only. */
  finish(): true | Refusal {
    return verifyItemMessage(this.header, this.message())
  }
}

/** True where the owner of an item signed this message, else why not (forged). */
export function verifyItemMessage(
  { id, signatureType, owner, signature }: Pick<ItemHeader, 'id' | 'signatureType' | 'owner' | 'signature'>,
  message: Uint8Array,
): true | Refusal {
  const held = verifySignature(signatureType, { owner, signature, message })
  if (held === true) return true
  const why = held === false ? 'the signature is not by the owner over this content' : held.message
  return refuse('forged', 'upstream', `data item ${id}: ${why}`)
}

/** Verifies a whole item: its header, or why not (malformed, forged). */
export function verifyItem(bytes: Uint8Array): ItemHeader | Refusal {
  const header = parseItemHeader(bytes)
  if (header === 'more') return refuse('malformed', 'client', 'data item: cut off in its header')
  if (isRefusal(header)) return header
  const verifier = new ItemVerifier(header)
  verifier.update(bytes.subarray(header.headerSize))
  const held = verifier.finish()
  return held === true ? header : held
}
