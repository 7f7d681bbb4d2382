import type { RowTag } from '../catalog/row.js'
import { Recent } from '../store/recent.js'
import { quoted } from './json-text.js'

/** A tag, each part as JSON. */
export interface TagText {
  readonly name: string
  readonly value: string
  /** `{"name":...,"value":...}` */
  readonly both: string
}

interface NameText {
  readonly name: string
  /** Content-Type, in any letter case. */
  readonly isContentType: boolean
}

/** Names of tags at hand: the same few are in most rows (up to twice as many are kept). */
const namesMax = 10_000
/** Longer names are read each time. */
const nameBytesMax = 100

/** Words of the index as JSON. */
export class Texts {
  /** Keyed by the bytes of the name, one character for each. */
  readonly #names = new Recent<string, NameText>(namesMax)

  tag(tag: RowTag): TagText {
    const { name } = this.#name(tag.name)
    const value = JSON.stringify(tag.value.toString('utf8'))
    return { name, value, both: `{"name":${name},"value":${value}}` }
  }

  /** Whether the name of a tag is Content-Type, in any letter case. */
  isContentType({ name }: RowTag): boolean {
    return this.#name(name).isContentType
  }

  #name(bytes: Buffer): NameText {
    const key = bytes.toString('latin1')
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const name = JSON.stringify(bytes.toString('utf8'))
    const text = { name, isContentType: name.toLowerCase() === '"content-type"' }
    if (bytes.length <= nameBytesMax) this.#names.set(key, text)
    return text
  }

  /** An address or id in base64url. */
  id(bytes: Buffer): string {
    return quoted(bytes.toString('base64url'))
  }
}
