import { sameBytes, textOfBytes, utf8 } from './bytes.js'

/** One tag of a transaction or data item. Both sides are bytes; text only for reading. */
export interface Tag {
  readonly name: Uint8Array
  readonly value: Uint8Array
}

/** A tag read as UTF-8 text; malformed sequences become U+FFFD. */
export function tagText(tag: Tag): { name: string; value: string } {
  return { name: textOfBytes(tag.name), value: textOfBytes(tag.value) }
}

/** A tag from text, as UTF-8. */
export function tagOf(name: string, value: string): Tag {
  return { name: utf8(name), value: utf8(value) }
}

/** The value of the first tag called `name` (compared exactly), as text. */
export function tagValue(tags: readonly Tag[], name: string): string | undefined {
  const wanted = utf8(name)
  const found = tags.find((tag) => sameBytes(wanted, tag.name))
  return found === undefined ? undefined : textOfBytes(found.value)
}
