import { joined, textOfBytes, utf8 } from './bytes.js'
import { ClientError } from './errors.js'

/** A tag as the caller gives it. */
export interface TextTag {
  readonly name: string
  readonly value: string
}

/** ANS-104: 128 tags, names up to 1024 bytes, values up to 3072; services take 4096 bytes of encoded tags. */
export const tagLimits = { count: 128, nameBytes: 1024, valueBytes: 3072, encodedBytes: 4096 } as const

/** Zigzag. */
function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value < 0 ? -2 * value - 1 : 2 * value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  bytes.push(rest)
  return Uint8Array.from(bytes)
}

/** Tags as ANS-104 writes them: one block of an Avro array; no bytes for no tags. Throws `invalid-input` beyond limits. */
export function packTags(tags: readonly TextTag[]): Uint8Array {
  if (tags.length === 0) return new Uint8Array(0)
  const parts: Uint8Array[] = [varint(tags.length)]
  for (const tag of tags) {
    const name = utf8(tag.name)
    const value = utf8(tag.value)
    if (name.length > tagLimits.nameBytes || value.length > tagLimits.valueBytes)
      throw tooMany(`the tag ${tag.name.slice(0, 40)} is too long`)
    parts.push(varint(name.length), name, varint(value.length), value)
  }
  const packed = joined(...parts, Uint8Array.of(0))
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
  const records = usual.subarray(varint(tags.length).length, -1)
  const sized = joined(varint(-tags.length), varint(records.length), records, Uint8Array.of(0))
  return [usual, sized].flatMap((bytes) => [bytes, bytes.subarray(0, -1)])
}

function tooMany(what: string): ClientError {
  const { count, nameBytes, valueBytes, encodedBytes } = tagLimits
  const limits = `${count} tags, names of ${nameBytes} and values of ${valueBytes} bytes, ${encodedBytes} bytes in all`
  return new ClientError('invalid-input', what, `stay within ${limits}`)
}

/**
 * The tags of an encoded array, or undefined where one is cut off or there are too many. The network has arrays in other forms
 * than `packTags` writes, and this reads of them what gateways read. The end of the bytes ends the array. Bytes behind its end
 * and the sizes of blocks mean nothing. Numbers may have needless groups. A negative length is malformed.
 */
export function unpackTags(bytes: Uint8Array): TextTag[] | undefined {
  const tags: TextTag[] = []
  let at = 0
  /** Zigzag varint; one that is cut off is continued by zeros. */
  const number = (): number => {
    let value = 0
    for (let weight = 1; ; weight *= 128) {
      const byte = bytes[at++] ?? 0
      value += (byte & 0x7f) * weight
      if (byte < 128) return value % 2 === 1 ? -(value + 1) / 2 : value / 2
    }
  }
  const text = (): string | undefined => {
    const length = number()
    if (!(length >= 0 && length <= bytes.length - at)) return undefined
    at += length
    return textOfBytes(bytes.subarray(at - length, at))
  }
  for (;;) {
    const count = number()
    if (count === 0 || Number.isNaN(count)) return tags
    if (tags.length + Math.abs(count) > tagLimits.count) return undefined
    if (count < 0) number()
    for (let left = Math.abs(count); left > 0; left--) {
      const name = text()
      const value = name === undefined ? undefined : text()
      if (name === undefined || value === undefined) return undefined
      tags.push({ name, value })
    }
  }
}

/** The value of the first tag of this name. */
export function tagValueOf(tags: readonly TextTag[], name: string): string | undefined {
  return tags.find((tag) => tag.name === name)?.value
}
