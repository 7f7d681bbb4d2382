import { ClientError } from '../client/errors.js'
import { pathIn } from '../client/fs/drive-tree.js'
import type { OpenDrive } from '../client/fs/drives.js'
import type { DriveEntity } from '../client/fs/entities.js'
import { program } from './program-name.js'

/** Folders and files of a drive by their paths. Of two with the same path the newer one counts. */
export function pathsOf(open: OpenDrive): ReadonlyMap<string, DriveEntity> {
  const found = new Map<string, DriveEntity>()
  for (const entity of open.entities) {
    const path = pathIn(open, entity)
    if (path !== undefined && !found.has(path)) found.set(path, entity)
  }
  return found
}

function plain(path: string): string {
  return path.replace(/^\/+|\/+$/g, '')
}

/** What is at a path; undefined where nothing is. */
export function entityAt(open: OpenDrive, path: string): DriveEntity | undefined {
  return pathsOf(open).get(plain(path))
}

/** What is at a path below the root. Throws `not-found` where nothing is. */
export function childIn(open: OpenDrive, path: string): DriveEntity {
  const found = plain(path) === '' ? undefined : entityAt(open, path)
  if (found !== undefined) return found
  throw new ClientError(
    'not-found',
    `the drive has no ${path}`,
    `list it by: ${program} drive ls; ${program} drive mkdir makes folders`,
  )
}

/** The id of a folder; of the root's for no path. */
export function folderAt(open: OpenDrive, path: string): string {
  const { rootFolderId } = open.drive
  if (plain(path) === '' && rootFolderId !== undefined) return rootFolderId
  const found = childIn(open, path)
  if (found.kind === 'folder') return found.id
  throw new ClientError('invalid-input', `${path} is a file`, 'give a folder')
}

/** A path as the folder that it lies in, and its name there. */
export function parentAndName(path: string): { readonly parent: string; readonly name: string } {
  const at = plain(path).lastIndexOf('/')
  return { parent: plain(path).slice(0, Math.max(0, at)), name: plain(path).slice(at + 1) }
}
