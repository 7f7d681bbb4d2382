import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from '../store/blobs.js'
import { trackerOf } from '../torrent/named-tracker.js'
import type { SeededTorrent } from '../torrent/swarm.js'
import type { StoredBand } from './publication.js'
import type { Fetched } from './subscription.js'
import { bandKey, type Listing } from './wanted-bands.js'

/** The .torrent files of bands that were fetched, below `DATA_PATH/bands/subscribed/torrents`: needed to seed them. */
export class FetchedTorrents {
  readonly #folder: string

  constructor(bandsPath: string) {
    this.#folder = join(bandsPath, 'subscribed', 'torrents')
  }

  /** Moves the .torrent file at `path` here; false where there is none. */
  async keep(path: string, infohashV1: string): Promise<boolean> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    try {
      await rename(path, this.#path(infohashV1))
      return true
    } catch (error) {
      if (isMissing(error)) return false
      throw error
    }
  }

  /** Removes those that are not among these infohashes. */
  async sweep(kept: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#folder).catch((error: unknown) => {
      if (isMissing(error)) return []
      throw error
    })
    for (const name of names) {
      if (!kept.has(name.replace(/\.torrent$/, ''))) await rm(join(this.#folder, name), { force: true })
    }
  }

  /** Bands in place that can be seeded, with the trackers of the publishers that list them. */
  offerings(
    placed: readonly StoredBand[],
    fetched: ReadonlyMap<string, Fetched>,
    listings: readonly Listing[],
  ): SeededTorrent[] {
    return placed.flatMap(({ group, index, id, folder }) => {
      const known = fetched.get(bandKey(index, id))
      const infohashV1 = known?.torrent
      // A band that no publisher lists is removed soon: it is not offered any more.
      if (group !== 'installed' || infohashV1 === undefined || known?.goneMs !== undefined) return []
      const lists = ({ indexes }: Listing): boolean =>
        indexes.some(({ bands }) => bands.some(({ torrent }) => torrent?.infohashV1 === infohashV1))
      const trackers = listings.filter(lists).map(({ url }) => trackerOf(url))
      const path = (name: string): string => join(folder, name)
      return [{ infohashV1, torrentPath: this.#path(infohashV1), trackers, path }]
    })
  }

  #path(infohashV1: string): string {
    return join(this.#folder, `${infohashV1}.torrent`)
  }
}
