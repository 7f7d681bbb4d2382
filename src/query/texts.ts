import type { Dictionary } from '../catalog/dictionary.js'
import { Recent } from '../store/recent.js'
import { quoted } from './json-text.js'

/** A tag, each part as JSON. */
export interface TagText {
  readonly name: string
  readonly value: string
  /** `{"name":...,"value":...}` */
  readonly both: string
  /** Its name is Content-Type, in any letter case. */
  readonly isContentType: boolean
}

/** Cached words: the same few are in most rows (at most 1 KiB each; up to twice as many are kept). */
const knownMax = 10_000
/** Longer tags are read each time. */
const knownCharsMax = 200

/** Words of the index as JSON. They never change, so cached ones stay valid. */
export class Texts {
  readonly #tags = new Recent<number, TagText>(knownMax)
  readonly #ids = new Recent<number, string>(knownMax)

  constructor(private readonly dictionary: Dictionary) {}

  tag(number: number): TagText {
    const known = this.#tags.get(number)
    if (known !== undefined) return known
    const name = JSON.stringify(this.dictionary.name(number).toString('utf8'))
    const value = JSON.stringify(this.dictionary.value(number).toString('utf8'))
    const both = `{"name":${name},"value":${value}}`
    const tag = { name, value, both, isContentType: name.toLowerCase() === '"content-type"' }
    if (both.length <= knownCharsMax) this.#tags.set(number, tag)
    return tag
  }

  /** An address or id in base64url. */
  id(number: number): string {
    const known = this.#ids.get(number)
    if (known !== undefined) return known
    const text = quoted(this.dictionary.bytes(number).toString('base64url'))
    if (text.length <= knownCharsMax) this.#ids.set(number, text)
    return text
  }
}
