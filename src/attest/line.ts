/** One header line: its name as sent, and its value. */
export type Line = readonly [name: string, value: string]

/** Lines as one block: `Name: value` joined by CRLF, without a trailing one. */
export function blockOf(lines: readonly Line[]): string {
  // Joined and not added up: a block is kept, and a sum keeps each of its parts in memory.
  return lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')
}

/**
 * `value` without whatever could end a header line or is read differently by different programs: visible ASCII, space and
 * tab stay (RFC 9110 section 5.5). Characters of Latin-1 go too: some readers take them for UTF-8, and a signature over such a
 * line verifies in one program and fails in the next.
 */
export function safeValue(value: string): string {
  return value.replace(/[^\t\x20-\x7e]/g, '').trim()
}
