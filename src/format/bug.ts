/**
 * Tells a mistake of the program from what can be expected of disks, networks and other programs. JavaScript's own errors are
 * what mistakes look like; systems and libraries throw others, with a code or a name of their own.
 */
export function isBug(error: unknown): boolean {
  return (
    !(error instanceof Error) ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError ||
    error.name === 'AssertionError'
  )
}

/**
 * For those who turn whatever another machine or the disk throws into a refusal: a mistake of the program is none, and is thrown
 * on, to end in a 500 or with the thread, and in the log with its stack.
 */
export function expected(error: unknown): Error {
  if (isBug(error) || !(error instanceof Error)) throw error
  return error
}
