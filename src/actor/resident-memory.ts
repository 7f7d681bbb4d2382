let last = 0

/**
 * Memory of the program, in bytes. Node reads it from a file of the kernel, and throws where no descriptor is free: then it is
 * what it was last.
 */
export function residentBytes(): number {
  try {
    last = process.memoryUsage.rss()
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error
  }
  return last
}
