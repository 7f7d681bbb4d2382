import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { bandFile, type L1Band, readL1Band } from './l1-band.js'

/** A band and where it lies. */
export interface FoundL1 {
  readonly folder: string
  readonly band: L1Band
}

/** The bands in `folder`: itself, or those directly below it. Empty where there are none. */
export async function findL1(folder: string): Promise<FoundL1[] | Refusal> {
  const places = existsSync(join(folder, bandFile))
    ? [folder]
    : readdirSync(folder)
        .map((name) => join(folder, name))
        .filter((path) => existsSync(join(path, bandFile)))
  const found: FoundL1[] = []
  for (const place of places.sort()) {
    const band = await readL1Band(place)
    if (isRefusal(band)) return band
    found.push({ folder: place, band })
  }
  return found
}

/**
 * The chain of bands from the height `next` on (the lowest band's start where it is undefined). Each begins where the one before
 * ends, and is the longest of those.
 */
export function chainOf(found: readonly FoundL1[], next: number | undefined): FoundL1[] {
  const chain: FoundL1[] = []
  let from = next ?? Math.min(...found.map(({ band }) => band.heightRange[0]))
  for (;;) {
    const fitting = found.filter(
      ({ band: { heightRange } }) => heightRange[0] <= from && heightRange[1] >= from,
    )
    fitting.sort((one, other) => other.band.heightRange[1] - one.band.heightRange[1])
    const [best] = fitting
    if (best === undefined) return chain
    chain.push(best)
    from = best.band.heightRange[1] + 1
  }
}
