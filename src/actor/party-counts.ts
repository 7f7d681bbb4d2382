/** What a party holds, by a map of those that hold something. */
export function heldBy(counts: ReadonlyMap<string, number>, party: string): number {
  return counts.get(party) ?? 0
}

/** A party holds so much more or, with less than 0, less. */
export function countHeld(counts: Map<string, number>, party: string, change: number): void {
  const left = heldBy(counts, party) + change
  if (left > 0) counts.set(party, left)
  else counts.delete(party)
}
