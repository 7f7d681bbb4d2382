/**
 * A file as it was when it was looked at: another inode or time is another file. Halves of 64-bit numbers, because comparing and
 * making big integers for each request would cost more than the rest of a look-up.
 */
export interface FileState {
  readonly inodeLow: number
  readonly inodeHigh: number
  readonly modifiedLow: number
  readonly modifiedHigh: number
}

/** `modifiedNs`: nanoseconds since 1970. */
export function stampOf(inode: bigint, modifiedNs: bigint): FileState {
  return {
    inodeLow: low(inode),
    inodeHigh: low(inode >> 32n),
    modifiedLow: low(modifiedNs),
    modifiedHigh: low(modifiedNs >> 32n),
  }
}

function low(value: bigint): number {
  return Number(BigInt.asIntN(32, value))
}

/** Whether both are the same state of one file: inode and time of its last change. */
export function isSameFile(one: FileState, other: FileState): boolean {
  return (
    one.modifiedLow === other.modifiedLow &&
    one.inodeLow === other.inodeLow &&
    one.modifiedHigh === other.modifiedHigh &&
    one.inodeHigh === other.inodeHigh
  )
}
