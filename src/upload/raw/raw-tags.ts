import { encodeTags } from '../../format/avro-tags.js'
import { type Tag, tagOf } from '../../format/tag.js'
import type { Request } from '../../http/exchange.js'
import { movingTags } from '../charging/sharing.js'

/** What clients and other services take (upload: item-reader.ts). */
const limits = { tags: 128, name: 1024, value: 3072, bytes: 4096 }
/** Tags that are added here, and their bytes at most. */
const ownTags = 6
export const ownTagBytes = 512

/** Tags, in lower case, in which the service states who has paid for an item, and how it came. */
const serviceTags: ReadonlySet<string> = new Set([
  'bundler',
  'upload-type',
  'upload-timestamp',
  'payer-address',
  'x402-payment-id',
  'x402-network',
])

/** A tag as JSON has it. */
interface NamedTag {
  readonly name: string
  readonly value: string
}

const tagHeader = 'x-tag-'

/**
 * The tags of `X-Tag-*` lines. Names of header lines have no case: each word begins with a capital, as names of tags usually do.
 */
function tagLines(request: Pick<Request, 'headersUnder'>): NamedTag[] {
  return request.headersUnder(tagHeader).map(([line, value]) => ({
    name: line.slice(tagHeader.length).replace(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase()),
    value,
  }))
}

/**
 * The tags that a client wants on an item that is signed here: those of `x-data-item-tags` (a JSON list), then those of `X-Tag-*`
 * lines. Words: why they cannot be.
 */
export function wantedTags(request: Pick<Request, 'header' | 'headersUnder'>): Tag[] | string {
  const listed = read(request.header('x-data-item-tags') ?? '[]')
  if (listed === undefined) return 'x-data-item-tags must be a JSON list of {"name": ..., "value": ...}'
  const given = [...listed, ...tagLines(request)]
  if (!given.every(isNamedTag)) return 'A tag needs a name and a value'
  for (const { name } of given) {
    const fault = signedFault(name)
    if (fault !== undefined) return fault
  }
  const tags = given.map(({ name, value }) => tagOf(name, value))
  if (!given.some(({ name }) => name.toLowerCase() === 'content-type'))
    tags.unshift(tagOf('Content-Type', typeOf(request)))
  if (tags.length > limits.tags - ownTags) return `More than ${limits.tags - ownTags} tags`
  const long = tags.find(({ name, value }) => name.length > limits.name || value.length > limits.value)
  if (long !== undefined)
    return `A tag is longer than ${limits.name} bytes of name and ${limits.value} of value`
  const bytes = encodeTags(tags).length
  const most = limits.bytes - ownTagBytes
  return bytes > most ? `The tags have ${bytes} bytes, more than ${most}` : tags
}

/** Why a stranger must not give a tag of this name to an item that the service signs. Names count without case. */
function signedFault(name: string): string | undefined {
  const lower = name.toLowerCase()
  const shown = `The tag '${lower}'`
  if (movingTags.has(lower))
    return `${shown} moves credits of whoever signs an item, and this one is signed by the service: sign it yourself`
  return serviceTags.has(lower) ? `${shown} is given to such items by the service itself` : undefined
}

/** The type of the data: that of the request, where it is a plain media type. */
function typeOf(request: Pick<Request, 'header'>): string {
  const given = request.header('content-type')?.trim() ?? ''
  return /^[\w.+-]{1,64}\/[\w.+-]{1,64}(?:; ?[\w.+=-]{1,64})?$/.test(given)
    ? given
    : 'application/octet-stream'
}

function read(text: string): NamedTag[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) && value.every(isNamedTag) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function isNamedTag(value: unknown): value is NamedTag {
  if (typeof value !== 'object' || value === null) return false
  const { name, value: text } = value as Partial<Record<keyof NamedTag, unknown>>
  return typeof name === 'string' && typeof text === 'string' && name !== '' && text !== ''
}
