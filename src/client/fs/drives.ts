import { decodeBase64, encodeBase64 } from '../../format/base64url.js'
import { Gathered } from '../../format/gathered.js'
import { utf8 } from '../bytes.js'
import { ClientError } from '../errors.js'
import { allBytes, type PayloadSource, sourceOfBytes } from '../payload.js'
import type { ArweaveJwk } from '../rsa.js'
import type { FetchLike } from '../service.js'
import { type TextTag, tagValueOf } from '../tags.js'
import { nowMs } from '../timing.js'
import { contentPieces, type FetchContent } from './drive-content.js'
import { DriveIndex, type DriveItems } from './drive-index.js'
import { driveKeyOf, driveSignature, fileKeyOf, opened, sealed } from './drive-keys.js'
import { isWithin } from './drive-tree.js'
import {
  type DriveEntity,
  type DriveProblem,
  entityKey,
  heightOf,
  type ListedItem,
  metadataOf,
  newerFirst,
  pinTags,
  readEntity,
} from './entities.js'
import { sealedSource } from './sealed-source.js'

export interface DriveOptions {
  readonly gatewayUrl: string
  /** Uploads data with tags; resolves with the id. A client's `upload`, for example. */
  readonly publish?: (data: Uint8Array, tags: readonly TextTag[]) => Promise<string>
  /** The same of content that is read when it is sent; without it all of it is held. A client's `upload` takes both. */
  readonly publishSource?: (source: PayloadSource, tags: readonly TextTag[]) => Promise<string>
  /** The wallet that private drives are derived from. */
  readonly jwk?: ArweaveJwk
  readonly fetch?: FetchLike
  /** How the content of files is fetched; without it the gateway is believed. */
  readonly fetchContent?: FetchContent
  readonly appName?: string
  readonly appVersion?: string
  /** How the tag of the layer's version is called: `ArFS` on the public network. */
  readonly versionTag?: 'ArFS' | 'FS-Version'
}

/** A drive that was opened: all that its owner wrote into it, read once. */
export interface OpenDrive {
  readonly drive: DriveEntity
  /** Newest revision of each folder and file. */
  readonly entities: readonly DriveEntity[]
  /** All revisions of everything, newest first. */
  readonly revisions: readonly DriveEntity[]
  readonly problems: readonly DriveProblem[]
  /** The key of a private drive; undefined: it is public. */
  readonly key: Uint8Array | undefined
}

const layerVersion = '0.15'
/** Names, folders and facts of a private drive are encrypted by this alone, whose tag shows a change. */
const metadataCipher = 'AES256-GCM'
const parallelMax = 16

/** Drives, folders and files of the file-system layer. */
export class Drives {
  readonly #options: DriveOptions
  readonly index: DriveIndex

  constructor(options: DriveOptions) {
    this.#options = options
    this.index = new DriveIndex(
      options.gatewayUrl.replace(/\/+$/, ''),
      options.fetch ?? ((url, init) => fetch(url, init)),
    )
  }

  /**
   * Reads a drive whole. `password`: of a private one, and of no other (`untrue`). What cannot be read is among `problems` and
   * stops nothing.
   */
  async open(driveId: string, password?: string): Promise<OpenDrive> {
    // Whoever wrote the drive's id first owns it; anybody can copy its tags later.
    const first = await this.index.oldest({ 'Drive-Id': driveId, 'Entity-Type': 'drive' })
    if (first === undefined)
      throw new ClientError('not-found', `there is no drive ${driveId}`, 'check the id')
    const owner = first.owner.address
    const found = await this.index.driveItems(driveId, owner)
    const newest = found.items.filter((item) => entityKey(item)?.kind === 'drive').sort(newerFirst)
    const driveItem = newest[0] ?? first
    const isPrivate = tagValueOf(driveItem.tags, 'Drive-Privacy') === 'private'
    // Only the gateway states it: what is put into the drive would be readable for all.
    if (!isPrivate && password !== undefined) throw isPublic(driveId)
    const key = isPrivate ? await this.#driveKey(driveItem, found, password) : undefined
    const { entities: revisions, problems } = await this.#read(found, key)
    const drive = revisions.find(({ kind }) => kind === 'drive')
    if (drive === undefined) {
      const problem = problems.find(({ txId }) => txId === driveItem.id)
      throw new ClientError(
        isPrivate ? 'wrong-key' : 'malformed-answer',
        problem?.reason ?? 'no drive',
        'check the password',
      )
    }
    const seen = new Set<string>()
    const entities = revisions.filter(({ kind, id }) => {
      const isNew = kind !== 'drive' && !seen.has(id)
      seen.add(id)
      return isNew
    })
    return { drive, entities, revisions, problems: [...found.problems, ...problems], key }
  }

  async #driveKey(item: ListedItem, found: DriveItems, password: string | undefined): Promise<Uint8Array> {
    const { jwk } = this.#options
    if (jwk === undefined) throw new ClientError('no-signer', 'the drive is private', 'give its wallet (jwk)')
    if (password === undefined)
      throw new ClientError(
        'invalid-input',
        'the drive is private, and no password was given',
        'give its password',
      )
    const driveId = tagValueOf(item.tags, 'Drive-Id') ?? ''
    const upgraded = await driveKeyOf(await driveSignature(jwk, driveId, 2), password)
    if (tagValueOf(item.tags, 'Signature-Type') === '2') return upgraded
    // A drive of old: its signature may lie in the drive itself, encrypted by the newer key, for wallets that no longer make it.
    const kept = found.items
      .filter(({ tags }) => tagValueOf(tags, 'Entity-Type') === 'drive-signature')
      .sort(newerFirst)[0]
    if (kept === undefined) return driveKeyOf(await driveSignature(jwk, driveId, 1), password)
    const [cipher, iv] = [tagValueOf(kept.tags, 'Cipher'), tagValueOf(kept.tags, 'Cipher-IV')]
    return driveKeyOf(await opened(upgraded, await this.index.content(kept.id), cipher, iv), password)
  }

  async #read(
    { items, metadata }: DriveItems,
    key: Uint8Array | undefined,
  ): Promise<{ entities: DriveEntity[]; problems: DriveProblem[] }> {
    const wanted = items.filter((item) => entityKey(item) !== undefined).sort(newerFirst)
    const read = new Map<string, DriveEntity | string>()
    const waiting = [...wanted]
    const worker = async (): Promise<void> => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
        read.set(item.id, await this.#readOne(item, metadata.get(item.id), key))
      }
    }
    await Promise.all(Array.from({ length: parallelMax }, worker))
    const entities: DriveEntity[] = []
    const problems: DriveProblem[] = []
    for (const { id } of wanted) {
      const one = read.get(id) ?? 'it was not read'
      if (typeof one === 'string') problems.push({ txId: id, reason: one })
      else entities.push(one)
    }
    return { entities, problems }
  }

  async #readOne(
    item: ListedItem,
    kept: string | undefined,
    key: Uint8Array | undefined,
  ): Promise<DriveEntity | string> {
    try {
      const raw = await this.#metadata(item, kept, key)
      return readEntity(item, raw)
    } catch (error) {
      if (error instanceof ClientError) return error.message
      throw error
    }
  }

  async #metadata(
    item: ListedItem,
    kept: string | undefined,
    key: Uint8Array | undefined,
  ): Promise<Uint8Array> {
    const [cipher, iv] = [tagValueOf(item.tags, 'Cipher'), tagValueOf(item.tags, 'Cipher-IV')]
    const isPlain = cipher === undefined && iv === undefined
    // The tags are as a gateway lists them: without this one could put an entity of its own into a private drive.
    if (key !== undefined && cipher !== metadataCipher)
      throw new ClientError('wrong-key', 'it is not encrypted as all of a private drive is', 'it is not read')
    const bytes = kept === undefined ? undefined : isPlain ? utf8(kept) : decodeBase64(kept)
    const raw = bytes ?? (await this.index.content(item.id))
    if (isPlain) return raw
    if (key === undefined)
      throw new ClientError('wrong-key', 'it is encrypted in a public drive', 'it cannot be read')
    const { kind, id } = entityKey(item) ?? { kind: 'drive', id: '' }
    return opened(kind === 'file' ? await fileKeyOf(key, id) : key, raw, cipher, iv)
  }

  /**
   * The bytes of a file's version in pieces. What is long and encrypted is right only where no error comes behind the last piece:
   * use it then, not before.
   */
  read(open: OpenDrive, file: DriveEntity): AsyncGenerator<Uint8Array> {
    return contentPieces(this.index, this.#options.fetchContent, open, file)
  }

  /** The same at once. */
  async get(open: OpenDrive, file: DriveEntity): Promise<Uint8Array> {
    const gathered = new Gathered()
    for await (const piece of this.read(open, file)) gathered.add(piece)
    return gathered.bytes()
  }

  /** Makes a drive and its root folder. A `password` makes it private. */
  async create(name: string, password?: string): Promise<{ driveId: string; rootFolderId: string }> {
    const { jwk } = this.#options
    const [driveId, rootFolderId] = [crypto.randomUUID(), crypto.randomUUID()]
    let key: Uint8Array | undefined
    if (password !== undefined) {
      if (jwk === undefined)
        throw new ClientError('no-signer', 'a private drive needs a wallet', 'give its jwk')
      key = await driveKeyOf(await driveSignature(jwk, driveId, 2), password)
    }
    const privacy =
      key === undefined
        ? { 'Drive-Privacy': 'public' }
        : { 'Drive-Privacy': 'private', 'Drive-Auth-Mode': 'password', 'Signature-Type': '2' }
    await this.#write('drive', driveId, { name: checked(name), rootFolderId }, privacy, key)
    await this.#write('folder', driveId, { name }, { 'Folder-Id': rootFolderId }, key)
    return { driveId, rootFolderId }
  }

  /** Makes a folder; resolves with its id. */
  async createFolder(open: OpenDrive, name: string, parentId: string): Promise<string> {
    const id = crypto.randomUUID()
    const tags = { 'Folder-Id': id, 'Parent-Folder-Id': parentId }
    await this.#write('folder', open.drive.id, { name: checked(name) }, tags, open.key)
    return id
  }

  /** Writes a file, or with `fileId` a new version of one; resolves with its id. */
  async put(
    open: OpenDrive,
    file: {
      readonly name: string
      readonly parentId: string
      /** What is long should be a source: it is read, encrypted and sent piece by piece. */
      readonly data: Uint8Array | PayloadSource
      readonly contentType: string
      readonly fileId?: string
      readonly lastModified?: number
    },
  ): Promise<string> {
    const id = file.fileId ?? crypto.randomUUID()
    const fileKey = open.key === undefined ? undefined : await fileKeyOf(open.key, id)
    const plain = file.data instanceof Uint8Array ? sourceOfBytes(file.data) : file.data
    const { source, tags } =
      fileKey === undefined ? { source: plain, tags: [] } : await sealedSource(fileKey, plain)
    const type = fileKey === undefined ? file.contentType : 'application/octet-stream'
    const dataTxId = await this.#publishSource(source, [
      { name: 'Content-Type', value: type },
      ...tags,
      ...this.#app(),
    ])
    const { name, parentId, contentType, lastModified = nowMs() } = file
    const facts = { size: plain.size, lastModified, dataTxId, contentType, pinnedOwner: undefined }
    const metadata = metadataOf({ name: checked(name), file: facts })
    await this.#write(
      'file',
      open.drive.id,
      metadata,
      { 'File-Id': id, 'Parent-Folder-Id': parentId },
      fileKey,
      open.entities.find((one) => one.id === id),
    )
    return id
  }

  /** Puts an item of anybody into a public drive without uploading it again. */
  async pin(
    open: OpenDrive,
    pin: {
      name: string
      parentId: string
      dataTxId: string
      owner: string
      size: number
      contentType: string
    },
  ): Promise<string> {
    if (open.key !== undefined)
      throw new ClientError('invalid-input', 'private drives have no pins', 'upload the file')
    const id = crypto.randomUUID()
    const { name, parentId, dataTxId, owner: pinnedOwner, size, contentType } = pin
    const metadata = metadataOf({
      name: checked(name),
      file: { size, lastModified: nowMs(), dataTxId, contentType, pinnedOwner },
    })
    const own = { 'File-Id': id, 'Parent-Folder-Id': parentId }
    await this.#write('file', open.drive.id, metadata, { ...own, ...pinTags(dataTxId) }, undefined)
    return id
  }

  /** A new revision with another name, another folder, hidden or shown. The content of files stays where it is. */
  async change(
    open: OpenDrive,
    entity: DriveEntity,
    change: { readonly name?: string; readonly parentId?: string; readonly isHidden?: boolean },
  ): Promise<void> {
    if (change.parentId !== undefined && isWithin(open, change.parentId, entity.id))
      throw new ClientError('invalid-input', 'a folder cannot move into itself', 'choose another folder')
    const { name, isHidden, file, rootFolderId } = { ...entity, ...change }
    const metadata = metadataOf({ name: checked(name), isHidden, file, rootFolderId })
    const { kind, id } = entity
    const parentId = change.parentId ?? entity.parentId
    const parent = parentId === undefined ? {} : { 'Parent-Folder-Id': parentId }
    const own = kind === 'folder' ? { 'Folder-Id': id } : { 'File-Id': id }
    if (kind === 'drive')
      throw new ClientError('invalid-input', 'a drive is no folder or file', 'give one of its entities')
    const key = open.key === undefined || kind === 'folder' ? open.key : await fileKeyOf(open.key, id)
    const pin = file?.pinnedOwner === undefined ? {} : pinTags(file.dataTxId)
    await this.#write(kind, open.drive.id, metadata, { ...own, ...parent, ...pin }, key, entity)
  }

  /** Writes all that is in blocks up to now as one item, from which drives open faster. */
  async snapshot(open: OpenDrive): Promise<string> {
    const { items } = await this.index.driveItems(open.drive.id, open.drive.owner)
    const mined = items
      .filter(({ block, tags }) => block != null && tagValueOf(tags, 'Entity-Type') !== 'snapshot')
      .sort(newerFirst)
    const txSnapshots: unknown[] = []
    for (const gqlNode of mined) {
      const isEntity = entityKey(gqlNode) !== undefined
      const raw = isEntity ? await this.index.content(gqlNode.id) : undefined
      const isSealed = tagValueOf(gqlNode.tags, 'Cipher-IV') !== undefined
      const jsonMetadata =
        raw === undefined ? null : isSealed ? encodeBase64(raw) : new TextDecoder().decode(raw)
      txSnapshots.push({ gqlNode, jsonMetadata })
    }
    const heights = mined.map(heightOf)
    const [low, high] = [heights.at(-1) ?? 0, heights[0] ?? 0]
    const about = { 'Snapshot-Id': crypto.randomUUID(), 'Block-Start': '0', 'Block-End': String(high) }
    const tags = { ...about, 'Data-Start': String(low), 'Data-End': String(high) }
    return this.#write('snapshot', open.drive.id, { txSnapshots }, tags, undefined)
  }

  #app(): TextTag[] {
    const { appName = 'Sluice', appVersion = '0.1.0' } = this.#options
    return [
      { name: 'App-Name', value: appName },
      { name: 'App-Version', value: appVersion },
    ]
  }

  async #publish(data: Uint8Array, tags: readonly TextTag[]): Promise<string> {
    const { publish } = this.#options
    if (publish === undefined) throw new ClientError('no-signer', 'this needs an upload', 'give `publish`')
    return publish(data, tags)
  }

  async #publishSource(source: PayloadSource, tags: readonly TextTag[]): Promise<string> {
    const { publishSource } = this.#options
    return publishSource?.(source, tags) ?? this.#publish(await allBytes(source), tags)
  }

  async #write(
    kind: DriveEntity['kind'] | 'snapshot',
    driveId: string,
    json: object,
    own: Readonly<Record<string, string>>,
    key: Uint8Array | undefined,
    /** What it is a new revision of: it gets a later time, also within one second. */
    earlier?: DriveEntity,
  ): Promise<string> {
    const plain = utf8(JSON.stringify(json))
    const { bytes, tags } = key === undefined ? { bytes: plain, tags: [] } : await sealed(key, plain)
    const type = key === undefined ? 'application/json' : 'application/octet-stream'
    const head = {
      'Content-Type': type,
      'Entity-Type': kind,
      'Unix-Time': String(Math.max(Math.floor(nowMs() / 1000), (earlier?.unixTime ?? 0) + 1)),
    }
    const named = Object.entries({ ...head, 'Drive-Id': driveId, ...own }).map(([name, value]) => ({
      name,
      value,
    }))
    const version = { name: this.#options.versionTag ?? 'ArFS', value: layerVersion }
    return this.#publish(bytes, [...named, ...tags, ...this.#app(), version])
  }
}

function isPublic(driveId: string): ClientError {
  const found = `the drive ${driveId} is public, and a password was given`
  return new ClientError(
    'untrue',
    found,
    'leave the password out where that is right, or ask another gateway',
  )
}

function checked(name: string): string {
  const size = utf8(name).length
  if (size > 0 && size <= 255 && !name.includes('\0')) return name
  throw new ClientError('invalid-input', `a name of ${size} bytes`, 'give 1 to 255 bytes without NUL')
}
