import { randomBytes } from 'node:crypto'
import { mkdir, readdir, realpath, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { claim } from '../actor/claim.js'
import { isEntryName } from '../format/entry-name.js'
import { isMissing } from '../store/blobs.js'
import { synced } from '../store/synced.js'
import { isIndexName } from './index-names.js'
import type { BandGroup, StoredBand } from './publication.js'

/** Folder of a band below `root` (`DATA_PATH/bands`). Throws a RangeError on names that are no path segments. */
export function bandFolder(root: string, group: BandGroup, index: string, id: string): string {
  if (!isIndexName(index) || !isEntryName(id)) throw new RangeError(`not a band's name: ${index}/${id}`)
  return join(root, group, index, id)
}

/**
 * The bands on disk. A band appears whole, by the rename of its folder, and is never changed or overwritten afterwards, only
 * removed: readers that hold its files open go on reading them.
 */
export class BandStore {
  /**
   * Prefix of the names of this process's drafts. It is claimed while the process runs, so that other processes do
   * not remove them.
   */
  #drafts: Promise<string> | undefined

  /** `root` is `DATA_PATH/bands`. */
  constructor(readonly root: string) {}

  /** Makes the folders and removes drafts of processes that are gone. */
  async prepare(): Promise<void> {
    for (const name of ['tmp', 'own', 'installed', 'blobs', 'measured', 'torrents']) {
      await mkdir(join(this.root, name), { recursive: true, mode: 0o700 })
    }
    const above = await realpath(join(this.root, 'tmp'))
    for (const name of await readdir(above)) {
      const [prefix = name] = name.split('.')
      const claimed = await claim(join(above, prefix))
      if (claimed === undefined) continue
      await rm(join(above, name), { recursive: true, force: true })
      await claimed.release()
    }
  }

  /** A new empty folder on the same file system. */
  async draft(): Promise<string> {
    this.#drafts ??= this.#openDrafts()
    const path = `${await this.#drafts}.${randomBytes(8).toString('hex')}`
    await mkdir(path, { mode: 0o700 })
    return path
  }

  async #openDrafts(): Promise<string> {
    const above = join(this.root, 'tmp')
    await mkdir(above, { recursive: true, mode: 0o700 })
    const prefix = join(await realpath(above), `${process.pid}-${randomBytes(8).toString('hex')}`)
    await claim(prefix)
    return prefix
  }

  /**
   * Renames a finished draft to its place, after its bytes are flushed to disk. False where a band of this name
   * exists already: that one stays, and the draft is removed.
   */
  async place(draft: string, group: BandGroup, index: string, id: string): Promise<boolean> {
    const folder = bandFolder(this.root, group, index, id)
    for (const name of await readdir(draft)) await synced(join(draft, name))
    await synced(draft)
    const above = join(this.root, group, index)
    const made = await mkdir(above, { recursive: true, mode: 0o700 })
    try {
      await rename(draft, folder)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
      await this.discard(draft)
      return false
    }
    await synced(above)
    if (made !== undefined) await synced(join(this.root, group))
    return true
  }

  async discard(draft: string): Promise<void> {
    await rm(draft, { recursive: true, force: true })
  }

  /** Every band in place, by index and id. Other files are ignored. */
  async list(group: BandGroup): Promise<StoredBand[]> {
    const found: StoredBand[] = []
    for (const index of await folders(join(this.root, group))) {
      if (!isIndexName(index)) continue
      for (const id of await folders(join(this.root, group, index))) {
        if (isEntryName(id)) found.push({ group, index, id, folder: bandFolder(this.root, group, index, id) })
      }
    }
    return found
  }

  /** Removes a band: first it is renamed to a draft, so that it is gone at once, then its files are deleted. */
  async remove({ group, index, id }: StoredBand): Promise<void> {
    const aside = await this.draft()
    try {
      await rename(bandFolder(this.root, group, index, id), join(aside, 'band'))
    } catch (error) {
      if (!isMissing(error)) throw error
    }
    await this.discard(aside)
  }
}

async function folders(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true })
    return entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .sort()
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}
