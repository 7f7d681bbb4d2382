import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../../config/read.js'
import type { Log } from '../actor/log.js'
import { isMissing } from '../store/blobs.js'
import { roomMinBytes } from '../store/disk-full.js'
import type { DiskShares } from '../threads/resources.js'

const freeMost = 1_073_741_824
const freeShare = 8
const cacheShare = 0.75
/** With two rings of segments, and one that is being emptied, a few of them are never free at once. */
const segmentShare = 64

/** The shares of a disk of so many bytes. */
export function sharesOf(sizeBytes: number): DiskShares {
  const freeMinBytes = Math.max(Math.min(freeMost, sizeBytes / freeShare), 2 * roomMinBytes)
  return { sizeBytes, freeMinBytes: Math.floor(freeMinBytes), segmentMaxBytes: sizeBytes / segmentShare }
}

/** The settings with `retrieval.cacheMaxBytes` reduced to a share of the disk. All threads are started with the result. */
export function withinDisk(config: Config, { sizeBytes }: DiskShares): Config {
  const cacheMaxBytes = Math.min(config.retrieval.cacheMaxBytes, Math.floor(sizeBytes * cacheShare))
  return { ...config, retrieval: { ...config.retrieval, cacheMaxBytes } }
}

/** The shares of the disk that `folder` lies on, or will lie on. */
export function diskShares(folder: string): DiskShares {
  return sharesOf(roomAt(folder)?.sizeBytes ?? Number.POSITIVE_INFINITY)
}

/** Size of the disk and what this user may still write to it; undefined where the file system does not say it. */
function roomAt(folder: string): { readonly sizeBytes: number; readonly freeBytes: number } | undefined {
  try {
    const { blocks, bavail, bsize } = statfsSync(folder)
    return blocks === 0 ? undefined : { sizeBytes: blocks * bsize, freeBytes: bavail * bsize }
  } catch (error) {
    // The folder is made later, on the disk of the one above it.
    return isMissing(error) && dirname(folder) !== folder ? roomAt(dirname(folder)) : undefined
  }
}

/** Shows an operator how the disk is shared out, and warns where what is new is not cached. */
export function sayShares(
  folder: string,
  { freeMinBytes }: DiskShares,
  segmentBytes: number,
  log: Pick<Log, 'info' | 'warn'>,
): void {
  const room = roomAt(folder)
  if (room === undefined) return
  const measured = { ...room, freeMinBytes, segmentBytes }
  if (room.freeBytes >= freeMinBytes + segmentBytes) log.info(measured, 'room on the disk of DATA_PATH')
  else
    log.warn(
      measured,
      'the disk of DATA_PATH has little room: content up to 1 MiB is not cached. See "A small disk" in deploy/OPERATING.md',
    )
}
