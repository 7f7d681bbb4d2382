import { decodeTags, encodedInteger, encodeTags, standardTagLimits } from '../format/avro-tags.js'
import { joined } from '../format/bytes.js'
import { isRefusal } from '../format/refusal.js'
import { tagOf, tagText } from '../format/tag.js'
import { ClientError } from './errors.js'

/** A tag as the caller gives it. */
export interface TextTag {
  readonly name: string
  readonly value: string
}

/** ANS-104: 128 tags, names up to 1024 bytes, values up to 3072; services take 4096 bytes of encoded tags. */
export const tagLimits = { count: 128, nameBytes: 1024, valueBytes: 3072, encodedBytes: 4096 } as const

/** Tags as ANS-104 writes them: one block of an Avro array; no bytes for no tags. Throws `invalid-input` beyond limits. */
export function packTags(tags: readonly TextTag[]): Uint8Array {
  const encoded = tags.map(({ name, value }) => tagOf(name, value))
  const long = encoded.findIndex(
    ({ name, value }) => name.length > tagLimits.nameBytes || value.length > tagLimits.valueBytes,
  )
  if (long >= 0) throw tooMany(`the tag ${tags[long]?.name.slice(0, 40)} is too long`)
  const packed = encodeTags(encoded)
  if (tags.length > tagLimits.count) throw tooMany(`${tags.length} tags`)
  if (packed.length > tagLimits.encodedBytes) throw tooMany(`${packed.length} bytes of tags`)
  return packed
}

/**
 * The forms in which clients are known to write an array, the usual one first. It ends with its bytes or with a 0, and the block
 * states its size or does not. A signature is over one of them, and a list of tags does not show which.
 */
export function packedForms(tags: readonly TextTag[]): readonly Uint8Array[] {
  if (tags.length === 0) return [new Uint8Array(0), Uint8Array.of(0)]
  const usual = packTags(tags)
  const records = usual.subarray(encodedInteger(tags.length).length, -1)
  const sized = joined(
    encodedInteger(-tags.length),
    encodedInteger(records.length),
    records,
    Uint8Array.of(0),
  )
  return [usual, sized].flatMap((bytes) => [bytes, bytes.subarray(0, -1)])
}

function tooMany(what: string): ClientError {
  const { count, nameBytes, valueBytes, encodedBytes } = tagLimits
  const limits = `${count} tags, names of ${nameBytes} and values of ${valueBytes} bytes, ${encodedBytes} bytes in all`
  return new ClientError('invalid-input', what, `stay within ${limits}`)
}

/** The tags of an encoded array as `decodeTags` reads it, or undefined where one is cut off or there are too many. */
export function unpackTags(bytes: Uint8Array): TextTag[] | undefined {
  const read = decodeTags(bytes, standardTagLimits)
  return isRefusal(read) ? undefined : read.tags.map(tagText)
}

/** The value of the first tag of this name. */
export function tagValueOf(tags: readonly TextTag[], name: string): string | undefined {
  return tags.find((tag) => tag.name === name)?.value
}
