/**
 * Text of a statement for ClickHouse. It is put together from constants of this program, whole numbers and bytes only, and bytes
 * are written as escaped hexadecimal digits: nothing that a client sends can become a part of the statement.
 */
export class Sql {
  constructor(readonly text: string) {}
}

/** What may stand for a value. */
export type SqlPart = Sql | number | Uint8Array

/** Writes a statement: `` sql`height <= ${12}` ``. Throws a RangeError on numbers that are not whole or below zero. */
export function sql(texts: TemplateStringsArray, ...parts: readonly SqlPart[]): Sql {
  let text = texts[0] as string
  for (const [at, part] of parts.entries()) text += textOf(part) + (texts[at + 1] as string)
  return new Sql(text)
}

function textOf(part: SqlPart): string {
  if (part instanceof Sql) return part.text
  if (typeof part !== 'number') {
    // A list of literals is one element of the statement, of which ClickHouse takes 50,000; of calls each has several.
    const hex = Buffer.from(part.buffer, part.byteOffset, part.byteLength).toString('hex')
    return `'${hex.replaceAll(/../g, '\\x$&')}'`
  }
  if (!Number.isSafeInteger(part) || part < 0) throw new RangeError(`${part} is no whole number`)
  return String(part)
}

/** Names of tables and columns, which stand in this program. Throws a RangeError on anything else. */
export function columnList(words: readonly string[]): Sql {
  for (const word of words)
    if (!/^[a-z_]+$/.test(word)) throw new RangeError(`${word} is no name of a column`)
  return new Sql(words.join(', '))
}

const between = { list: ', ', and: ' AND ', or: ' OR ', union: ' UNION ALL ' } as const

/** Parts one after the other; of none an empty text. */
export function sqlList(parts: readonly SqlPart[], by: keyof typeof between): Sql {
  return new Sql(parts.map(textOf).join(between[by]))
}
