import { decodeBase64url } from '../../format/base64url.js'
import { idOfSignature, type SignedHead } from '../item-layout.js'
import { packTags, type TextTag } from '../tags.js'
import { chainHeader } from './gateways.js'

/**
 * Tags that clients write on files, in that order. Of other tags the headers of an answer do not show enough: names have small
 * letters there, and the order is lost.
 */
const namesKnown = ['Content-Type', 'File-SHA256']

/**
 * The header of an item from the headers of a gateway's answer, which saves a request for it. Undefined where they do not
 * suffice. It may differ from the owner's: then the signature does not hold, and the header has to be requested.
 */
export function headOfAnswer(id: string, headers: Headers): SignedHead | undefined {
  const bytes = (name: string): Uint8Array | undefined => decodeBase64url(chainHeader(headers, name) ?? '')
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
