import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../actor/log.js'
import { isMissing } from '../store/blobs.js'

/** Blocks that a file takes on disk are counted in these, whatever its file system's own are (POSIX, `st_blocks`). */
const blockBytes = 512

/**
 * What lies on disk of bands that are not whole, by `<index>/<id>`, in bytes that it takes there: files of torrents are sparse
 * until they are whole. `bandsPath` is `DATA_PATH/bands`.
 */
export async function partialBands(bandsPath: string): Promise<Map<string, number>> {
  const above = join(bandsPath, 'fetching')
  const found = new Map<string, number>()
  for (const index of await namesIn(above)) {
    for (const id of await namesIn(join(above, index))) {
      found.set(`${index}/${id}`, await bytesBelow(join(above, index, id)))
    }
  }
  return found
}

/** What lies here of a band goes after so many attempts in a row that brought nothing. */
const barrenMax = 3

/** What was begun of bands and is not fetched now: it counts like whole bands, and goes when it is of no more use. */
export class BegunBands {
  /** Attempts in a row that brought nothing, by band. */
  readonly #barren = new Map<string, number>()

  /** `bandsPath` is `DATA_PATH/bands`. */
  constructor(
    private readonly bandsPath: string,
    private readonly log: Log,
  ) {}

  /** What takes how many bytes, by band; without those in `underWay`. What is not `listed` goes. */
  async sweep(listed: ReadonlySet<string>, underWay: ReadonlySet<string>): Promise<Map<string, number>> {
    const begun = await partialBands(this.bandsPath)
    for (const key of [...begun.keys()]) {
      if (listed.has(key) && !underWay.has(key)) continue
      if (!underWay.has(key)) await this.#drop(key)
      begun.delete(key)
    }
    for (const key of this.#barren.keys()) if (!begun.has(key) && !underWay.has(key)) this.#barren.delete(key)
    return begun
  }

  /** Makes what is `begun` take no more than `leftBytes`, by removing some of it. False where nothing of it may be there. */
  async makeRoom(begun: Map<string, number>, leftBytes: number): Promise<boolean> {
    if (leftBytes < 0) return false
    let begunBytes = [...begun.values()].reduce((sum, bytes) => sum + bytes, 0)
    for (const [key, bytes] of [...begun]) {
      if (begunBytes <= leftBytes) break
      await this.#drop(key)
      this.log.info({ band: key, bytes }, 'what was begun of a band goes, for another one')
      begun.delete(key)
      begunBytes -= bytes
    }
    return true
  }

  /** An attempt failed, before which `begunBytes` were there: they stay for the next one, unless nothing more comes of it. */
  async failed(key: string, begunBytes: number): Promise<void> {
    const bytes = (await partialBands(this.bandsPath)).get(key) ?? 0
    const barren = bytes > begunBytes ? 0 : (this.#barren.get(key) ?? 0) + 1
    this.#barren.set(key, barren)
    if (barren >= barrenMax) await this.#drop(key)
  }

  #drop(key: string): Promise<void> {
    this.#barren.delete(key)
    return rm(join(this.bandsPath, 'fetching', key), { recursive: true, force: true })
  }
}

async function bytesBelow(path: string): Promise<number> {
  try {
    const about = await stat(path)
    if (!about.isDirectory()) return about.blocks * blockBytes
  } catch (error) {
    // Whoever fetches it may have put it in place just now.
    if (isMissing(error)) return 0
    throw error
  }
  let bytes = 0
  for (const name of await namesIn(path)) bytes += await bytesBelow(join(path, name))
  return bytes
}

async function namesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}
