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

/** Failed attempts in a row without a new byte, after which the partial files of a band are removed. */
const barrenMax = 3

/**
 * Partial bands that are not being fetched now. They count against the size limit like whole bands, and are removed
 * when they are not needed any more.
 */
export class BegunBands {
  /** Attempts in a row that brought nothing, by band. */
  readonly #barren = new Map<string, number>()

  /** `bandsPath` is `DATA_PATH/bands`. */
  constructor(
    private readonly bandsPath: string,
    private readonly log: Log,
  ) {}

  /** Bytes of each partial band, without those in `underWay`. Bands that are not `listed` are removed. */
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

  /** Removes partial bands until the rest takes no more than `leftBytes`. False where `leftBytes` is negative. */
  async makeRoom(begun: Map<string, number>, leftBytes: number): Promise<boolean> {
    if (leftBytes < 0) return false
    let begunBytes = [...begun.values()].reduce((sum, bytes) => sum + bytes, 0)
    for (const [key, bytes] of [...begun]) {
      if (begunBytes <= leftBytes) break
      await this.#drop(key)
      this.log.info({ band: key, bytes }, 'partial files of a band were removed to make room for another one')
      begun.delete(key)
      begunBytes -= bytes
    }
    return true
  }

  /**
   * An attempt failed, before which `begunBytes` were there: the files are kept for the next attempt, unless repeated
   * attempts brought nothing.
   */
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
