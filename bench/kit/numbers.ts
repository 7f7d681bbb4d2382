/** The middle of the numbers: of an even count the mean of the two in the middle; 0 of none. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other)
  const middle = sorted.length >> 1
  if (sorted.length % 2 === 1) return sorted[middle] ?? 0
  return sorted.length === 0 ? 0 : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

/** The quantile for `share` (0 to 1); 0 of none. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = [...numbers].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/** A number in at most four digits where it is below 10,000, whole above. */
export function short(number: number): string {
  if (!Number.isFinite(number)) return '-'
  const size = Math.abs(number)
  if (size >= 100 || number === 0) return number.toFixed(0)
  if (size >= 10) return number.toFixed(1)
  return size >= 0.1 ? number.toFixed(2) : number.toPrecision(2)
}
