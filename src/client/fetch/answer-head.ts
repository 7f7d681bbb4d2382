import { fromBase64url } from '../bytes.js'
import { idOfSignature, type SignedHead } from '../item-layout.js'
import { packTags, type TextTag } from '../tags.js'
import { chainHeader } from './gateways.js'

/**
 * Tags that clients write on files, in that order. Of other tags the lines of an answer do not tell enough: names have small
 * letters there, and the order is lost.
 */
const namesKnown = ['Content-Type', 'File-SHA256']

/**
 * The header of an item as the lines of a gateway's answer tell it, which saves asking for it. Undefined where the lines do not
 * tell enough. It may be another than the owner's: then the signature does not hold, and the header has to be asked for.
 */
export function headOfAnswer(id: string, headers: Headers): SignedHead | undefined {
  const bytes = (name: string): Uint8Array | undefined => fromBase64url(chainHeader(headers, name) ?? '')
  const [signature, owner, target, anchor] = ['signature', 'owner', 'target', 'anchor'].map(bytes)
  const signatureType = Number(chainHeader(headers, 'signature-type'))
  const tags = tagsOfAnswer(headers)
  if (signature === undefined || owner === undefined || target === undefined || anchor === undefined)
    return undefined
  if (tags === undefined || !(signatureType > 0) || idOfSignature(signature) !== id) return undefined
  const fields = { signatureType, owner, target, anchor, tags, rawTags: packTags(tags) }
  return { ...fields, signature, id, bytes: new Uint8Array(0) }
}

function tagsOfAnswer(headers: Headers): TextTag[] | undefined {
  if (chainHeader(headers, 'tags-truncated') !== undefined) return undefined
  const count = Number(chainHeader(headers, 'tag-count') ?? '0')
  const tags = namesKnown.flatMap((name) => {
    const value = chainHeader(headers, `tag-${name.toLowerCase()}`)
    return value === undefined || value.length > 1024 ? [] : [{ name, value }]
  })
  return tags.length === count ? tags : undefined
}
