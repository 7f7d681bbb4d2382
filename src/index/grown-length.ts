/**
 * The length that a growing array gets: at once all that a full batch may need, then a quarter more each time. The operating
 * system gives no memory before it is written to, so what is too much costs nothing, and nothing is copied again and again.
 */
export function grownLength(needed: number, usual: number): number {
  return needed <= usual ? usual : Math.ceil(needed * 1.25)
}
