import { createHash } from 'node:crypto'
import fc from 'fast-check'

/**
 * Where all chance in tests comes from. CI always uses the same number, so that a failure there comes from the change; without
 * the variable every run by hand has its own. A failing property prints it.
 */
const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
if (!Number.isSafeInteger(seed)) throw new Error('FUZZ_SEED is no whole number')

fc.configureGlobal({ seed })

let drawn = 0

/** What Math.random gives, of the same row for the same seed. */
export function random(): number {
  if (drawn === 0) process.stdout.write(`# FUZZ_SEED=${seed} repeats what is drawn here\n`)
  drawn += 1
  return createHash('sha256').update(`${seed} ${drawn}`).digest().readUInt32LE(0) / 2 ** 32
}

/** Begins the row anew: each file has the same one, whichever files its process ran before. */
export function drawAgain(): void {
  drawn = 0
}

/** A whole number from 0 to below `count`. */
export function below(count: number): number {
  return Math.floor(random() * count)
}

/** One of a list that is not empty. */
export function pick<T>(list: readonly T[]): T {
  return list[below(list.length)] as T
}

/** A copy in another order. */
export function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((one) => ({ one, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one)
}

export { fc }
