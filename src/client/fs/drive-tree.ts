import type { DriveEntity } from './entities.js'

/** What an open drive has: its drive and the newest revision of everything else. */
export interface DriveTree {
  readonly drive: DriveEntity
  readonly entities: readonly DriveEntity[]
}

/** Entities by their ids, of each list of them once: trees of thousands look up the path of each. */
const byIds = new WeakMap<readonly DriveEntity[], ReadonlyMap<string, DriveEntity>>()

function byIdOf({ entities }: DriveTree): ReadonlyMap<string, DriveEntity> {
  const known = byIds.get(entities) ?? new Map(entities.map((one) => [one.id, one]))
  byIds.set(entities, known)
  return known
}

/** Whether a folder is another one, or lies below it. */
export function isWithin(open: DriveTree, folderId: string, ancestor: string): boolean {
  const byId = byIdOf(open)
  const seen = new Set<string>()
  for (
    let at: string | undefined = folderId;
    at !== undefined && !seen.has(at);
    at = byId.get(at)?.parentId
  ) {
    if (at === ancestor) return true
    seen.add(at)
  }
  return false
}

/** The path of an entity from the root folder on, names joined by slashes; undefined where a folder above it is missing. */
export function pathIn(open: DriveTree, entity: DriveEntity): string | undefined {
  const byId = byIdOf(open)
  const names: string[] = []
  const seen = new Set<string>()
  for (let at: DriveEntity | undefined = entity; at !== undefined; at = byId.get(at.parentId ?? '')) {
    if (at.id === open.drive.rootFolderId || at.parentId === undefined) return names.join('/')
    if (seen.has(at.id)) return undefined
    seen.add(at.id)
    names.unshift(at.name)
  }
  return undefined
}
