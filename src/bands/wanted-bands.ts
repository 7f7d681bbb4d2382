import { bandBytes, type WantedBand } from './band-fetch.js'
import { bandTorrentName, supersededBy } from './index-names.js'
import type { BandKind, PublishedIndex, StoredBand } from './publication.js'
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
  readonly missing: readonly WantedBand[]
  /** Fetched before, in place, and listed. */
  readonly kept: readonly { readonly key: string; readonly digest: string; readonly sizeBytes: number }[]
  /** Fetched before, in place, and not listed any more while all that is listed is here. */
  readonly gone: readonly { readonly key: string; readonly stored: StoredBand }[]
  /** Every band that is listed. */
  readonly listed: ReadonlySet<string>
}

/** Names a band. */
export function bandKey(index: string, id: string): string {
  return `${index}/${id}`
}

/**
 * Compares the lists with the bands in place. A band that several publishers list is fetched from the first of them
 * that is not paused after a failure (`rests`: for a band, by its name, and a publisher). Pure.
 */
export function planBands(
  listings: readonly Listing[],
  kinds: readonly BandKind[],
  placed: readonly StoredBand[],
  fetched: ReadonlyMap<string, Fetched>,
  rests: (key: string, url: string) => boolean = () => false,
): BandPlan {
  const here = new Map(placed.map((stored) => [bandKey(stored.index, stored.id), stored]))
  const listed = new Set<string>()
  const missing = new Map<string, WantedBand>()
  const kept = new Map<string, { key: string; digest: string; sizeBytes: number }>()
  /** Indexes of which somebody lists something, and whether all of it is here. */
  const whole = new Map<string, boolean>()
  for (const { url, indexes, isOld } of listings) {
    for (const { name, kind, bands } of indexes) {
      if (!kinds.some((known) => known.kind === kind)) continue
      const replaced = new Set(bands.flatMap(({ metadata }) => supersededBy(metadata)))
      for (const band of bands) {
        if (replaced.has(band.id)) continue
        const key = bandKey(name, band.id)
        listed.add(key)
        const isHere = here.has(key)
        whole.set(name, (whole.get(name) ?? true) && isHere && !isOld)
        const before = missing.get(key)
        const isBetter = before === undefined || (rests(key, before.url) && !rests(key, url))
        if (!isHere && !isOld && isBetter) missing.set(key, { url, index: name, kind, band })
        if (isHere && here.get(key)?.group === 'installed' && !kept.has(key)) {
          kept.set(key, { key, digest: bandTorrentName(band.files), sizeBytes: bandBytes(band) })
        }
      }
    }
  }
  const gone = [...here].flatMap(([key, stored]) => {
    const isOurs = stored.group === 'installed' && fetched.has(key)
    return isOurs && !listed.has(key) && whole.get(stored.index) === true ? [{ key, stored }] : []
  })
  return { missing: [...missing.values()], kept: [...kept.values()], gone, listed }
}
