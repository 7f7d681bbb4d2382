/** More ranges than this are answered with everything: each costs a frame and a read. */
const rangesMax = 64

/**
 * Which windows of `sizeBytes` bytes a Range header asks for, in its order; empty: none can be satisfied.
 * `ignore`: answer with everything, because the unit is unknown (RFC 9110 section 14.2), there are too many ranges, or they
 * overlap so much that together they are longer than the content. `malformed`: not the syntax of section 14.1.
 */
export function selectRanges(
  text: string,
  sizeBytes: number,
): { start: number; end: number }[] | 'ignore' | 'malformed' {
  const equals = text.indexOf('=')
  if (equals < 0) return 'malformed'
  if (text.slice(0, equals).trim().toLowerCase() !== 'bytes') return 'ignore'
  const words = text
    .slice(equals + 1)
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
  if (words.length === 0) return 'malformed'
  if (!words.every((word) => /^(\d+-\d*|-\d+)$/.test(word))) return 'malformed'
  if (words.length > rangesMax) return 'ignore'
  const windows = words.flatMap((word) => windowOf(word, sizeBytes))
  const total = windows.reduce((sum, { start, end }) => sum + end - start, 0)
  return windows.length > 1 && total > sizeBytes ? 'ignore' : windows
}

/** The window of one range, or none where it lies outside or runs backwards. */
function windowOf(word: string, sizeBytes: number): { start: number; end: number }[] {
  const dash = word.indexOf('-')
  const last = word.slice(dash + 1)
  if (dash === 0) {
    const start = Math.max(0, sizeBytes - Number(last))
    return start < sizeBytes ? [{ start, end: sizeBytes }] : []
  }
  const start = Number(word.slice(0, dash))
  const end = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes)
  return start < end ? [{ start, end }] : []
}
