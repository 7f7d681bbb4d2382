import { isEntryName } from '../format/entry-name.js'
import { torrentName } from '../torrent/torrent.js'
import type { BandFile } from './publication.js'

const indexShape = /^[a-z0-9-]{1,64}$/

/** Name of an index or of a kind: a path segment in lower case. */
export function isIndexName(name: string): boolean {
  return indexShape.test(name) && isEntryName(name)
}

/** The bands that a band replaces by its metadata: an id or a list of ids; any other value counts as none. */
export function supersededBy(metadata: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const superseded =
    metadata !== undefined && Object.hasOwn(metadata, 'supersedes') ? metadata.supersedes : []
  const list: readonly unknown[] = Array.isArray(superseded) ? superseded : [superseded]
  return list.filter((id): id is string => typeof id === 'string' && isEntryName(id))
}

/**
 * Name of a band's torrent, and the path component below `webseed/`: 16 hex digits that depend on names, sizes and digests of
 * its files. Equal lists of files have equal names, so that a list is compared by it too.
 */
export function bandTorrentName(files: readonly BandFile[]): string {
  return torrentName(files.map(({ name, size, sha256 }) => ({ name, sizeBytes: size, sha256Hex: sha256 })))
}
