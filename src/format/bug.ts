/**
 * Whether an error is a bug of the program, and no failure that must be expected of disks, networks and other
 * programs. Bugs show as JavaScript's own errors (TypeError and the like); the system and libraries throw errors with
 * a code or a name of their own.
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
 * For code that turns errors of another machine or of the disk into refusals. A bug is thrown on instead: it ends in
 * a 500 or ends the thread, and is logged with its stack.
 */
export function expected(error: unknown): Error {
  if (isBug(error) || !(error instanceof Error)) throw error
  return error
}
