import { bandBytes, bandDigest, type Wanted } from './band-fetch.js'
import { supersededBy } from './names.js'
import type { BandKind, PublishedIndex, Shelved } from './protocol.js'
import type { Fetched } from './subscription.js'

/** What one publisher lists now. */
export interface Listing {
  /** Address of its own routes. */
  readonly url: string
  readonly indexes: readonly PublishedIndex[]
  /** Expired, or read from disk at start: nothing new is taken from it, nothing is dropped because of it. */
  readonly isOld: boolean
}

export interface BandPlan {
  /** To be fetched, in the order of the documents. */
  readonly missing: readonly Wanted[]
  /** Fetched before, in place, and listed. */
  readonly kept: readonly { readonly key: string; readonly digest: string; readonly sizeBytes: number }[]
  /** Fetched before, in place, and not listed any more while all that is listed is here. */
  readonly gone: readonly { readonly key: string; readonly shelved: Shelved }[]
  /** Every band that is listed. */
  readonly listed: ReadonlySet<string>
}

/** Names a band. */
export function keyOf(index: string, id: string): string {
  return `${index}/${id}`
}

/** What follows from the lists and from what is there. Pure. */
export function planBands(
  listings: readonly Listing[],
  kinds: readonly BandKind[],
  placed: readonly Shelved[],
  fetched: ReadonlyMap<string, Fetched>,
): BandPlan {
  const here = new Map(placed.map((shelved) => [keyOf(shelved.index, shelved.id), shelved]))
  const listed = new Set<string>()
  const missing = new Map<string, Wanted>()
  const kept = new Map<string, { key: string; digest: string; sizeBytes: number }>()
  /** Indexes of which somebody lists something, and whether all of it is here. */
  const whole = new Map<string, boolean>()
  for (const { url, indexes, isOld } of listings) {
    for (const { name, kind, bands } of indexes) {
      if (!kinds.some((known) => known.kind === kind)) continue
      const replaced = new Set(bands.flatMap(({ metadata }) => supersededBy(metadata)))
      for (const band of bands) {
        if (replaced.has(band.id)) continue
        const key = keyOf(name, band.id)
        listed.add(key)
        const isHere = here.has(key)
        whole.set(name, (whole.get(name) ?? true) && isHere && !isOld)
        if (!isHere && !isOld && !missing.has(key)) missing.set(key, { url, index: name, kind, band })
        if (isHere && here.get(key)?.shelf === 'installed' && !kept.has(key)) {
          kept.set(key, { key, digest: bandDigest(band.files), sizeBytes: bandBytes(band) })
        }
      }
    }
  }
  const gone = [...here].flatMap(([key, shelved]) => {
    const isOurs = shelved.shelf === 'installed' && fetched.has(key)
    return isOurs && !listed.has(key) && whole.get(shelved.index) === true ? [{ key, shelved }] : []
  })
  return { missing: [...missing.values()], kept: [...kept.values()], gone, listed }
}
