/**
 * Optional white space of HTTP fields (RFC 9110 section 5.6.3): space and tab. Written without regular expressions: a
 * pattern with blanks on both sides of something optional takes quadratic time on long runs of blanks.
 */

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** The first position at or after `at` that is no blank, or the end. */
export function skipBlanks(text: string, at: number): number {
  let to = at
  while (to < text.length && isBlank(text.charCodeAt(to))) to++
  return to
}

/** `text` without blanks around it. */
export function trimBlanks(text: string): string {
  const from = skipBlanks(text, 0)
  let to = text.length
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}
