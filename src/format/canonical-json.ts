/** Deepest nesting accepted. No document of this program is deeper, and the recursion must not overflow the stack. */
const depthMax = 64

/**
 * The canonical JSON text of a value (RFC 8785): members sorted by UTF-16 code units, no blanks, numbers as ECMAScript prints
 * them. Throws a RangeError on what has no such text: numbers that are not finite, lone surrogates, values that JSON does not
 * have, nesting deeper than 64. Members that are undefined are left out.
 */
export function canonicalJson(value: unknown): string {
  return textOf(value, 0)
}

function textOf(value: unknown, depth: number): string {
  if (depth > depthMax) throw new RangeError('nested too deep for canonical JSON')
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new RangeError('not a number of JSON')
    return JSON.stringify(value)
  }
  if (typeof value === 'string') return stringOf(value)
  if (Array.isArray(value)) return `[${value.map((entry) => textOf(entry, depth + 1)).join(',')}]`
  if (typeof value !== 'object') throw new RangeError(`no value of JSON: ${typeof value}`)
  const members: string[] = []
  const record = value as Record<string, unknown>
  // The default order of sort is that of UTF-16 code units.
  for (const name of Object.keys(record).sort()) {
    const member = record[name]
    if (member !== undefined) members.push(`${stringOf(name)}:${textOf(member, depth + 1)}`)
  }
  return `{${members.join(',')}}`
}

function stringOf(text: string): string {
  // A surrogate without its other half.
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text)) {
    throw new RangeError('a lone surrogate has no canonical form')
  }
  return JSON.stringify(text)
}
