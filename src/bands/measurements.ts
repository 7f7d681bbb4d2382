import { mkdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as z from 'zod'
import { isMissing } from '../store/blobs.js'
import type { FileStamp, StoredOffer } from './band-offer.js'
import type { Measure, Measured, StoredBand } from './publication.js'
import { replaceFile } from './replace-file.js'

const shape = z.object({
  files: z.array(z.object({ name: z.string(), size: z.number(), sha256: z.string() })),
  torrent: z
    .object({
      infohashV1: z.string(),
      infohashV2: z.string().optional(),
      magnet: z.string(),
      torrentUrl: z.string(),
    })
    .optional(),
  stamps: z.array(z.object({ inode: z.string(), modifiedNs: z.string() })),
})

/** What was measured of a band, and which files it was measured of. */
export interface Remembered extends Measured {
  /** Keyed by SHA-256. */
  readonly stamps: StoredOffer['files']
}

/** Measures each band once and keeps the result on disk, because a band has gigabytes and never changes. */
export class Measurements {
  /** `torrents`: folder of the .torrent files that `measure` leaves there; undefined where it makes none. */
  constructor(
    private readonly folder: string,
    private readonly measure: Measure,
    private readonly torrents: string | undefined,
  ) {}

  /** The kept measurement of a band; it is measured again where one of its files was replaced. */
  async of(band: StoredBand, names: readonly string[]): Promise<Remembered> {
    const before = await stampsOf(band.folder, names)
    const kept = await this.#read(band)
    const fits =
      kept !== undefined &&
      kept.files.length === names.length &&
      kept.files.every(({ name }, index) => name === names[index]) &&
      JSON.stringify(kept.stamps) === JSON.stringify(before) &&
      (await this.#hasTorrent(kept.torrent?.infohashV1))
    if (fits) return remembered(kept, before)
    const measured = await this.measure(band.folder, names)
    const after = await stampsOf(band.folder, names)
    if (JSON.stringify(after) !== JSON.stringify(before)) {
      throw new Error(`band ${band.id} changed while it was measured`)
    }
    const path = this.#path(band)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await replaceFile(path, JSON.stringify({ ...measured, stamps: before }))
    return remembered(measured, before)
  }

  async forget(band: StoredBand): Promise<void> {
    await rm(this.#path(band), { force: true })
  }

  /** Torrents may be wanted now that were not before, or the other way round, or the file is gone. */
  async #hasTorrent(infohash: string | undefined): Promise<boolean> {
    if (this.torrents === undefined || infohash === undefined) return this.torrents === infohash
    try {
      return (await stat(join(this.torrents, `${infohash}.torrent`))).isFile()
    } catch (error) {
      if (isMissing(error)) return false
      throw error
    }
  }

  #path({ index, id }: StoredBand): string {
    return join(this.folder, index, `${id}.json`)
  }

  async #read(band: StoredBand): Promise<z.infer<typeof shape> | undefined> {
    try {
      const checked = shape.safeParse(JSON.parse(await readFile(this.#path(band), 'utf8')))
      return checked.success ? checked.data : undefined
    } catch (error) {
      if (isMissing(error) || error instanceof SyntaxError) return undefined
      throw error
    }
  }
}

async function stampsOf(folder: string, names: readonly string[]): Promise<FileStamp[]> {
  const stamps: FileStamp[] = []
  for (const name of names) {
    const found = await stat(join(folder, name), { bigint: true })
    stamps.push({ inode: String(found.ino), modifiedNs: String(found.mtimeNs) })
  }
  return stamps
}

function remembered(
  { files, torrent }: z.infer<typeof shape> | Measured,
  list: readonly FileStamp[],
): Remembered {
  const stamps: Record<string, FileStamp> = {}
  files.forEach(({ sha256 }, index) => {
    const stamp = list[index]
    if (stamp !== undefined) stamps[sha256] = stamp
  })
  return { files, stamps, ...(torrent === undefined ? {} : { torrent }) }
}
