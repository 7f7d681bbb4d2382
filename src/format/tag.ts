/** One tag of a transaction or data item. Both sides are bytes; text only for reading. */
export interface Tag {
  readonly name: Uint8Array
  readonly value: Uint8Array
}

/** A tag read as UTF-8 text; malformed sequences become U+FFFD. */
export function tagText(tag: Tag): { name: string; value: string } {
  return { name: Buffer.from(tag.name).toString('utf8'), value: Buffer.from(tag.value).toString('utf8') }
}

/** A tag from text, as UTF-8. */
export function tagOf(name: string, value: string): Tag {
  return { name: Buffer.from(name, 'utf8'), value: Buffer.from(value, 'utf8') }
}

/** The value of the first tag called `name` (compared exactly), as text. */
export function tagValue(tags: readonly Tag[], name: string): string | undefined {
  const wanted = Buffer.from(name, 'utf8')
  const found = tags.find((tag) => wanted.equals(tag.name))
  return found === undefined ? undefined : Buffer.from(found.value).toString('utf8')
}
