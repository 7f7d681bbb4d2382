import { isId } from '../../format/id.js'
import { parsedJson } from '../../format/json.js'
import { textOfBytes } from '../bytes.js'
import { type TextTag, tagValueOf } from '../tags.js'

/** An item of a drive as an index lists it. */
export interface ListedItem {
  readonly id: string
  readonly tags: readonly TextTag[]
  readonly owner: { readonly address: string }
  readonly block?: { readonly height: number; readonly timestamp?: number } | null
  readonly bundledIn?: { readonly id: string } | null
}

/** Whether a gateway's JSON has the form of an item: nothing in it is relied on before. */
export function isListedItem(value: unknown): value is ListedItem {
  const { id, tags, owner, block } = (value ?? {}) as Partial<ListedItem>
  const areTags = Array.isArray(tags) && tags.every(isTextTag)
  const hasHeight = block === undefined || block === null || typeof block.height === 'number'
  return typeof id === 'string' && areTags && typeof owner?.address === 'string' && hasHeight
}

function isTextTag(value: unknown): value is TextTag {
  const { name, value: text } = (value ?? {}) as Partial<TextTag>
  return typeof name === 'string' && typeof text === 'string'
}

/** One revision of a drive, folder or file. */
export interface DriveEntity {
  readonly kind: 'drive' | 'folder' | 'file'
  /** UUID; all revisions have the same. */
  readonly id: string
  readonly driveId: string
  /** The item with this record. */
  readonly txId: string
  readonly owner: string
  readonly name: string
  /** Absent for drives and root folders. */
  readonly parentId: string | undefined
  readonly isHidden: boolean
  readonly isPrivate: boolean
  /** Seconds since 1970; 0 where the tag is malformed. */
  readonly unixTime: number
  /** Absent while it is not in a block. */
  readonly height: number | undefined
  readonly rootFolderId: string | undefined
  readonly file: FileFacts | undefined
}

export interface FileFacts {
  readonly size: number
  /** Milliseconds since 1970. */
  readonly lastModified: number
  readonly dataTxId: string
  readonly contentType: string
  /** Set where the content is somebody's item that was pinned. */
  readonly pinnedOwner: string | undefined
}

/** What could not be read, and why: listings go on without it. */
export interface DriveProblem {
  readonly txId: string
  readonly reason: string
}

const kinds = { drive: 'Drive-Id', folder: 'Folder-Id', file: 'File-Id' } as const

/** Kind and UUID that an item's tags name; undefined for what is no drive, folder or file. */
export function entityKey(item: ListedItem): { kind: DriveEntity['kind']; id: string } | undefined {
  const kind = tagValueOf(item.tags, 'Entity-Type')
  if (kind !== 'drive' && kind !== 'folder' && kind !== 'file') return undefined
  const id = tagValueOf(item.tags, kinds[kind])
  return id === undefined ? undefined : { kind, id }
}

/** Height for comparing: what is not in a block yet is the newest. */
export function heightOf(item: ListedItem): number {
  return item.block?.height ?? Number.POSITIVE_INFINITY
}

/** Values in metadata, which has some ten of its own and may have any others. */
const metadataBounds = { values: 100_000 }

/** Reads the metadata of an item; a text: what is wrong with it. */
export function readEntity(item: ListedItem, metadata: Uint8Array): DriveEntity | string {
  const key = entityKey(item)
  const driveId = tagValueOf(item.tags, 'Drive-Id')
  if (key === undefined || driveId === undefined) return 'its tags name no drive, folder or file'
  const json = parsedJson(textOfBytes(metadata), metadataBounds) as Record<string, unknown> | null | undefined
  if (json === undefined) return 'its metadata is no JSON, or too much'
  if (typeof json !== 'object' || json === null || typeof json.name !== 'string')
    return 'its metadata has no name'
  const file = key.kind === 'file' ? readFile(json) : undefined
  if (key.kind === 'file' && file === undefined) return 'its metadata names no content'
  const seconds = Number(tagValueOf(item.tags, 'Unix-Time'))
  const isPrivate =
    tagValueOf(item.tags, 'Cipher') !== undefined || tagValueOf(item.tags, 'Cipher-IV') !== undefined
  return {
    ...key,
    driveId,
    txId: item.id,
    owner: item.owner.address,
    name: json.name,
    parentId: tagValueOf(item.tags, 'Parent-Folder-Id'),
    isHidden: json.isHidden === true,
    isPrivate,
    unixTime: Number.isSafeInteger(seconds) && seconds >= 0 ? seconds : 0,
    height: item.block?.height,
    rootFolderId: typeof json.rootFolderId === 'string' ? json.rootFolderId : undefined,
    file,
  }
}

function readFile(json: Record<string, unknown>): FileFacts | undefined {
  const { size, lastModifiedDate, dataTxId, dataContentType, pinnedDataOwner } = json
  // It becomes part of addresses: what is no id could name anything else there.
  if (typeof dataTxId !== 'string' || !isId(dataTxId)) return undefined
  return {
    size: typeof size === 'number' ? size : 0,
    lastModified: typeof lastModifiedDate === 'number' ? lastModifiedDate : 0,
    dataTxId,
    contentType: typeof dataContentType === 'string' ? dataContentType : 'application/octet-stream',
    pinnedOwner: typeof pinnedDataOwner === 'string' ? pinnedDataOwner : undefined,
  }
}

/** JSON of metadata in the order in which clients in use write it; `isHidden` only where it is set. */
export function metadataOf(entity: {
  readonly name: string
  readonly rootFolderId?: string | undefined
  readonly isHidden?: boolean
  readonly file?: FileFacts | undefined
}): Record<string, unknown> {
  const { name, rootFolderId, isHidden, file } = entity
  const pin =
    file?.pinnedOwner === undefined
      ? {}
      : { pinnedDataOwner: file.pinnedOwner, thumbnail: null, assignedNames: null }
  return {
    name,
    ...(rootFolderId !== undefined && { rootFolderId }),
    ...(file && {
      size: file.size,
      lastModifiedDate: file.lastModified,
      dataTxId: file.dataTxId,
      dataContentType: file.contentType,
      ...pin,
    }),
    ...(isHidden === true && { isHidden }),
  }
}

/** Tags of each revision of a file whose content is somebody's item. */
export function pinTags(dataTxId: string): Record<string, string> {
  return { 'ArFS-Pin': 'true', 'Pinned-Data-Tx': dataTxId }
}

/** Newest first; of one block, or of none yet, by the time that is written in it, then the order of the index. */
export function newerFirst(one: ListedItem, other: ListedItem): number {
  const [a, b] = [heightOf(one), heightOf(other)]
  return a === b ? secondsOf(other) - secondsOf(one) : b > a ? 1 : -1
}

function secondsOf({ tags }: ListedItem): number {
  const seconds = Number(tagValueOf(tags, 'Unix-Time'))
  return Number.isSafeInteger(seconds) ? seconds : 0
}
