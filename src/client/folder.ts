import { bundleTags, packBundle } from './bundle-layout.js'
import { utf8 } from './bytes.js'
import type { SluiceClient, UploadOptions } from './client.js'
import { asClientError, ClientError } from './errors.js'
import {
  contentHash,
  type FileKey,
  type FolderIndexLayer,
  hashTag,
  journalLayer,
  keyText,
} from './folder-index.js'
import { type ManifestChoice, manifestOf, type PathManifest, pathManifestType } from './path-manifest.js'
import { allBytes, type PayloadSource, sourceOfBytes } from './payload.js'
import { type DataItemOptions, signedItem } from './prepare.js'
import { addressOfOwner, type ClientSigner } from './signer.js'
import type { TextTag } from './tags.js'
import { type FilePlace, type Say, toldFailure, UploadTask } from './task.js'
import { throwIfAborted } from './timing.js'
import type { UploadResult } from './upload.js'

export interface FolderFile {
  /** Path in the folder, parts joined by slashes. */
  readonly path: string
  readonly source: PayloadSource
  readonly contentType?: string
}

export interface FolderOptions extends UploadOptions {
  readonly files: readonly FolderFile[]
  /** Options of the manifest; false: no manifest. */
  readonly manifest?: ManifestChoice | false
  /** Tags that change with every upload belong here: among those of files they would make every file another one. */
  readonly manifestDataItemOpts?: DataItemOptions
  /** Who knows what is on the network already; the journal of the resume store is always among them. Empty: only that. */
  readonly folderIndex?: readonly FolderIndexLayer[]
  /** Whether an id that a layer knows is still there: asked before it is reused. */
  readonly isPresent?: (id: string) => Promise<boolean>
  /** Files up to 256 KiB go together in one item that is a bundle. Services that give small items away charge for the bundle. */
  readonly bundleSmallFiles?: boolean
  /** 5 unless said. */
  readonly maxConcurrentUploads?: number
}

export interface FolderIndexSummary {
  readonly totalFiles: number
  readonly uploadedFiles: number
  readonly reusedFiles: number
  readonly uploadedBytes: number
  readonly reusedBytes: number
  /** Layers that failed and why. */
  readonly skippedLayers: readonly string[]
}

export interface FolderFileResult {
  readonly path: string
  readonly id: string
  readonly reused: boolean
  /** Absent for what was reused, and for files in a bundle, whose receipt is the bundle's. */
  readonly receipt?: UploadResult
}

export interface FolderResult {
  readonly manifest: PathManifest | undefined
  readonly fileResponses: readonly FolderFileResult[]
  readonly manifestResponse: FolderFileResult | undefined
  readonly folderIndexSummary: FolderIndexSummary
}

const smallBytesMax = 256 * 1024
const bundleBytesMax = 16 * 1024 * 1024
const bundleItemsMax = 1000

interface Entry {
  readonly file: FolderFile
  readonly place: FilePlace
  readonly key: FileKey
}

/** Uploads the files of a folder and a manifest of their paths. What is on the network already is not uploaded again. */
export function uploadFolder(client: SluiceClient, options: FolderOptions): UploadTask<FolderResult> {
  return new UploadTask('folder', options.events, (say) => new FolderUpload(client, options, say).run())
}

class FolderUpload {
  readonly #signer: ClientSigner
  readonly #layers: readonly FolderIndexLayer[]
  readonly #results = new Map<string, FolderFileResult>()
  readonly #skipped: string[] = []
  readonly #totalBytes: number
  #uploadedBytes = 0
  #reusedBytes = 0

  constructor(
    private readonly client: SluiceClient,
    private readonly options: FolderOptions,
    private readonly say: Say,
  ) {
    const { currentSigner } = client
    if (currentSigner === undefined)
      throw new ClientError('no-signer', 'an upload needs a signer', 'give the client a signer')
    this.#signer = currentSigner
    const owner = addressOfOwner(currentSigner.owner)
    this.#layers = [journalLayer(client.uploadParts.store, owner), ...(options.folderIndex ?? [])]
    this.#totalBytes = options.files.reduce((sum, { source }) => sum + source.size, 0)
  }

  async run(): Promise<FolderResult> {
    const { files, manifest: choice = {} } = this.options
    if (files.length === 0)
      throw new ClientError('invalid-input', 'the folder has no files', 'give at least one file')
    if (new Set(files.map(({ path }) => path)).size < files.length)
      throw new ClientError('invalid-input', 'two files have one path', 'give each file a path of its own')
    const entries = await this.#entries()
    const missing = await this.#reuse(entries)
    const [bundled, single] = this.#sorted(missing)
    for (const group of bundled) await this.#uploadBundle(group)
    await this.#uploadEach(single)
    const ids = new Map(files.map(({ path }) => [path, this.#results.get(path)?.id ?? '']))
    const manifest = choice === false ? undefined : manifestOf(ids, choice)
    const manifestResponse = manifest === undefined ? undefined : await this.#uploadManifest(manifest)
    const fileResponses = files.flatMap(({ path }) => this.#results.get(path) ?? [])
    const reusedFiles = fileResponses.filter(({ reused }) => reused).length
    return {
      manifest,
      fileResponses,
      manifestResponse,
      folderIndexSummary: {
        totalFiles: files.length,
        uploadedFiles: files.length - reusedFiles,
        reusedFiles,
        uploadedBytes: this.#uploadedBytes,
        reusedBytes: this.#reusedBytes,
        skippedLayers: this.#skipped,
      },
    }
  }

  #told(currentPhase: 'hashing' | 'files' | 'manifest'): void {
    const processedBytes = this.#uploadedBytes + this.#reusedBytes
    const files = { processedFiles: this.#results.size, totalFiles: this.options.files.length }
    this.say({ type: 'folder', ...files, processedBytes, totalBytes: this.#totalBytes, currentPhase })
  }

  /** Hashes every file. */
  async #entries(): Promise<Entry[]> {
    const { files, signal } = this.options
    const entries: Entry[] = []
    for (const [fileIndex, file] of files.entries()) {
      throwIfAborted(signal)
      const place = { fileName: file.path, fileIndex, totalFiles: files.length }
      const hash = await toldFailure(this.say, place, () => contentHash(file.source))
      entries.push({ file, place, key: { hash, tags: this.#tags(file.contentType, hash) } })
      this.#told('hashing')
    }
    return entries
  }

  #tags(
    contentType: string | undefined,
    hash: string,
    more = this.options.dataItemOpts?.tags ?? [],
  ): TextTag[] {
    const isTyped =
      contentType === undefined || more.some(({ name }) => name.toLowerCase() === 'content-type')
    const type = isTyped ? [] : [{ name: 'Content-Type', value: contentType }]
    return [...type, ...more, { name: hashTag, value: hash }]
  }

  /** Takes what is on the network already, and gives the rest. */
  async #reuse(entries: readonly Entry[]): Promise<Entry[]> {
    let missing = [...entries]
    for (const layer of this.#layers) {
      const found = await this.#asked(layer, missing)
      const still: Entry[] = []
      for (const entry of missing) {
        const id = found.get(keyText(entry.key))
        if (id !== undefined && (await this.#isPresent(id))) this.#reused(entry, id)
        else still.push(entry)
      }
      missing = still
    }
    return missing
  }

  async #asked(layer: FolderIndexLayer, entries: readonly Entry[]): Promise<ReadonlyMap<string, string>> {
    if (entries.length === 0) return new Map()
    try {
      return await layer.find(entries.map(({ key }) => key))
    } catch (error) {
      if (!(error instanceof Error)) throw error
      const message = `${layer.name}: ${error.message}`
      this.#skipped.push(message)
      this.say({ type: 'notice', message })
      return new Map()
    }
  }

  async #isPresent(id: string): Promise<boolean> {
    return (await this.options.isPresent?.(id)) ?? true
  }

  #reused({ file, place }: Entry, id: string): void {
    this.#results.set(file.path, { path: file.path, id, reused: true })
    this.#reusedBytes += file.source.size
    this.say({ type: 'file-complete', ...place, id })
    this.#told('files')
  }

  /** Which files go together, and which alone. Files of the same bytes and tags go once. */
  #sorted(missing: readonly Entry[]): readonly [Entry[][], Entry[]] {
    if (this.options.bundleSmallFiles !== true) return [[], [...missing]]
    const groups: Entry[][] = []
    const single: Entry[] = []
    let bytes = 0
    for (const entry of missing) {
      const { size } = entry.file.source
      if (size > smallBytesMax) {
        single.push(entry)
        continue
      }
      const last = groups.at(-1)
      if (last === undefined || bytes + size > bundleBytesMax || last.length === bundleItemsMax) {
        groups.push([entry])
        bytes = size
      } else {
        last.push(entry)
        bytes += size
      }
    }
    return [groups, single]
  }

  async #uploadBundle(entries: readonly Entry[]): Promise<void> {
    const items: { id: string; bytes: Uint8Array }[] = []
    for (const { file, place, key } of entries) {
      throwIfAborted(this.options.signal)
      this.say({ type: 'file-start', ...place, fileSize: file.source.size })
      items.push(
        await toldFailure(this.say, place, async () => {
          return signedItem(await allBytes(file.source), { tags: key.tags }, this.#signer)
        }),
      )
    }
    const data = packBundle(items)
    const { dataItemOpts, events: _, ...options } = this.options
    const paidBy = dataItemOpts?.paidBy
    await this.client.upload({
      ...options,
      data,
      dataItemOpts: { tags: bundleTags, ...(paidBy && { paidBy }) },
    })
    for (const [index, entry] of entries.entries()) await this.#done(entry, items[index]?.id ?? '')
  }

  async #done({ file, place, key }: Entry, id: string, receipt?: UploadResult): Promise<void> {
    this.#results.set(file.path, { path: file.path, id, reused: false, ...(receipt && { receipt }) })
    this.#uploadedBytes += file.source.size
    for (const layer of this.#layers) await layer.remember?.(key, id)
    this.say({ type: 'file-complete', ...place, id })
    this.#told('files')
  }

  /** Several at once. After a failure nothing new is begun; what is under way ends first, and is in the journal. */
  async #uploadEach(entries: readonly Entry[]): Promise<void> {
    const waiting = [...entries]
    const failures: unknown[] = []
    const worker = async (): Promise<void> => {
      for (
        let entry = waiting.shift();
        entry !== undefined && failures.length === 0;
        entry = waiting.shift()
      ) {
        try {
          await this.#uploadOne(entry)
        } catch (error) {
          failures.push(error)
        }
      }
    }
    await Promise.all(Array.from({ length: this.options.maxConcurrentUploads ?? 5 }, worker))
    if (failures.length > 0) throw asClientError(failures[0])
  }

  async #uploadOne(entry: Entry): Promise<void> {
    const { file, place, key } = entry
    const twin = [...this.#results.values()].find(
      (one) => one.path !== file.path && this.#keys.get(one.path) === keyText(key),
    )
    if (twin !== undefined) return this.#reused(entry, twin.id)
    const { source } = file
    this.say({ type: 'file-start', ...place, fileSize: source.size })
    const { dataItemOpts, events: _, files: __, ...options } = this.options
    const receipt = await toldFailure(this.say, place, async () => {
      const task = this.client.upload({
        ...options,
        data: source,
        dataItemOpts: { ...dataItemOpts, tags: key.tags },
      })
      for await (const event of task) {
        if (event.type !== 'signing' && event.type !== 'upload') continue
        const bytes = { fileProcessedBytes: event.processedBytes, fileTotalBytes: event.totalBytes }
        this.say({ type: 'file-progress', ...place, ...bytes, step: event.type })
      }
      return task
    })
    this.#keys.set(file.path, keyText(key))
    await this.#done(entry, receipt.id, receipt)
  }

  readonly #keys = new Map<string, string>()

  async #uploadManifest(manifest: PathManifest): Promise<FolderFileResult> {
    this.#told('manifest')
    const source = sourceOfBytes(utf8(JSON.stringify(manifest)))
    const { manifestDataItemOpts: own, dataItemOpts, events: _, files: __, ...options } = this.options
    const hash = await contentHash(source)
    const key = { hash, tags: this.#tags(pathManifestType, hash, own?.tags ?? []) }
    const known = await this.#asked(this.#layers[0] as FolderIndexLayer, [
      { file: { path: '', source }, place: { fileName: '', fileIndex: 0, totalFiles: 0 }, key },
    ])
    const id = known.get(keyText(key))
    if (id !== undefined && (await this.#isPresent(id))) return { path: '', id, reused: true }
    const paidBy = own?.paidBy ?? dataItemOpts?.paidBy
    const receipt = await this.client.upload({
      ...options,
      data: source,
      dataItemOpts: { ...own, tags: key.tags, ...(paidBy && { paidBy }) },
    })
    await this.#layers[0]?.remember?.(key, receipt.id)
    return { path: '', id: receipt.id, reused: false, receipt }
  }
}
