import { isEntryName } from '../format/entry-name.js'
import { torrentName } from '../torrent/torrent.js'
import type { BandFile } from './publication.js'

const indexShape = /^[a-z0-9-]{1,64}$/

/** Name of an index or of a kind: a path segment in lower case. */
export function isIndexName(name: string): boolean {
  return indexShape.test(name) && isEntryName(name)
}

/** What a band says it replaces: an id, a list of ids, or nothing; whatever else stands there is nothing. */
export function supersededBy(metadata: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const said = metadata !== undefined && Object.hasOwn(metadata, 'supersedes') ? metadata.supersedes : []
  const list: readonly unknown[] = Array.isArray(said) ? said : [said]
  return list.filter((id): id is string => typeof id === 'string' && isEntryName(id))
}

/**
 * Name of a band's torrent, and the path component below `webseed/`: 16 hex digits that depend on names, sizes and digests of
 * its files. Equal lists of files have equal names, so that a list is compared by it too.
 */
export function bandTorrentName(files: readonly BandFile[]): string {
  return torrentName(files.map(({ name, size, sha256 }) => ({ name, sizeBytes: size, sha256Hex: sha256 })))
}
