import type { Header } from '../catalog/attributes.js'
import { encodeBase64url } from '../format/base64url.js'
import { tagText } from '../format/tag.js'
import { type Line, safeValue } from './line.js'
import type { Vocabulary } from './vocabulary.js'

/** How much of an item's header answers may carry. */
export interface MetadataBounds {
  /** Tags at most. */
  readonly tagsMax: number
  /** Bytes of all lines: name, value, and 4 for colon, space and line end. */
  readonly bytesMax: number
}

const nameMax = 128
const valueMax = 4096

/**
 * The item's own header as header lines: signature, owner, address, target, anchor, signature type, number of tags,
 * then a line for each tag. Names and values are written by others: characters that could end a header line are
 * removed. What does not fit into the bounds is left out (tags from the first that does not fit), and a last line
 * says so.
 */
export function metadataLines(header: Header, bounds: MetadataBounds, words: Vocabulary): Line[] {
  const lines: Line[] = []
  let left = bounds.bytesMax
  let truncated = header.tags.length > bounds.tagsMax
  const add = (name: string, value: string): boolean => {
    const cost = name.length + value.length + 4
    if (cost > left) {
      truncated = true
      return false
    }
    left -= cost
    lines.push([name, value])
    return true
  }

  for (const [name, value] of ownFields(header)) add(`${words.chain}${name}`, value)
  for (const tag of header.tags.slice(0, bounds.tagsMax)) {
    const text = tagText(tag)
    const name = tagHeaderName(text.name)
    if (name === '') continue
    if (!add(`${words.chain}Tag-${name}`, safeValue(text.value.slice(0, valueMax)))) break
  }
  if (truncated) lines.push([`${words.chain}Tags-Truncated`, 'true'])
  return lines
}

function ownFields(header: Header): [string, string][] {
  const fields: [string, string][] = []
  if (header.signature.length > 0) fields.push(['Signature', encodeBase64url(header.signature)])
  if (header.owner.length > 0) fields.push(['Owner', encodeBase64url(header.owner)])
  fields.push(['Owner-Address', header.ownerAddress])
  if (header.target.length > 0) fields.push(['Target', encodeBase64url(header.target)])
  if (header.anchor.length > 0) fields.push(['Anchor', encodeBase64url(header.anchor)])
  fields.push(['Signature-Type', String(header.signatureType)])
  if (header.tags.length > 0) fields.push(['Tag-Count', String(header.tags.length)])
  return fields
}

/** A tag's name as the end of a header name: letters, digits, `_` and single `-`; '' where nothing is left. */
export function tagHeaderName(name: string): string {
  return name
    .replace(/[^A-Za-z0-9_-]/g, '-')
    .replace(/-+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, nameMax)
}
