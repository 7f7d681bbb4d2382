import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { hashBandFile } from '../torrent/hash.js'
import { type HashedFile, hybridTorrent, magnetOf, type Torrent, torrentBytes } from '../torrent/torrent.js'
import type { BandFile, BandTorrent, Measure } from './publication.js'
import { replaceFile } from './replace-file.js'

/** Where a torrent's file is served, and in which it lies below `DATA_PATH/bands/torrents`. */
export function torrentFileName(torrent: Torrent): string {
  return `${torrent.infohashV1.toString('hex')}.torrent`
}

export interface TorrentMeasuring {
  /** Folder of .torrent files. */
  readonly torrentsPath: string
  /** Path of the gateway's own routes, e.g. `/gateway`. */
  readonly pathPrefix: string
  /** Trackers to be named in .torrent files. They are not part of the signed document. */
  readonly trackers: readonly string[]
}

/** The torrent of a band as its document names it. */
export function describeTorrent(torrent: Torrent, pathPrefix: string): BandTorrent {
  return {
    infohashV1: torrent.infohashV1.toString('hex'),
    infohashV2: torrent.infohashV2.toString('hex'),
    magnet: magnetOf(torrent),
    torrentUrl: `${pathPrefix}/indexes/torrents/${torrentFileName(torrent)}`,
  }
}

/** Digests and torrent of a band in one pass. The .torrent file is on disk when this resolves. */
export function measureTorrent({ torrentsPath, pathPrefix, trackers }: TorrentMeasuring): Measure {
  return async (folder, names) => {
    const hashed: HashedFile[] = []
    for (const name of names) hashed.push(await hashBandFile(folder, name))
    const torrent = hybridTorrent(hashed)
    await mkdir(torrentsPath, { recursive: true })
    await replaceFile(join(torrentsPath, torrentFileName(torrent)), torrentBytes(torrent, trackers))
    const files: BandFile[] = hashed.map(({ name, sizeBytes, sha256 }) => {
      return { name, size: sizeBytes, sha256: Buffer.from(sha256).toString('hex') }
    })
    return { files, torrent: describeTorrent(torrent, pathPrefix) }
  }
}
