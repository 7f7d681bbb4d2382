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
import { KeptFiles } from './kept-files.js'
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
  /** Signs the items within bundles, where the client's own signer would ask somebody for each: a session key. */
  readonly itemSigner?: ClientSigner
  /** 5 unless said. */
  readonly maxConcurrentUploads?: number
}

export interface FolderIndexSummary {
  readonly totalFiles: number
  readonly totalBytes: number
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

/** Files up to so many bytes are small: they may go into bundles. */
export const smallBytesMax = 256 * 1024
const bundleBytesMax = 16 * 1024 * 1024
const bundleItemsMax = 1000
/** Files read, hashed and signed at once; bundles on their way at once. */
const hashedAtOnce = 16
const bundlesAtOnce = 2

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
  readonly #itemSigner: ClientSigner
  readonly #layers: readonly FolderIndexLayer[]
  readonly #results = new Map<string, FolderFileResult>()
  readonly #skipped: string[] = []
  readonly #kept = new KeptFiles()
  /** Ends with the bundle that is being signed. */
  #signing: Promise<unknown> = Promise.resolve()
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
    this.#itemSigner = options.itemSigner ?? currentSigner
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
    const missing = await this.#reuse(await this.#entries())
    const [first, twins] = withoutTwins(missing)
    const [bundled, single] = this.#sorted(first)
    await inParallel(bundled, bundlesAtOnce, (group) => this.#uploadBundle(group))
    await inParallel(single, this.options.maxConcurrentUploads ?? 5, (entry) => this.#uploadOne(entry))
    for (const [entry, twin] of twins) this.#reused(entry, this.#results.get(twin.file.path)?.id ?? '')
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
        totalBytes: this.#totalBytes,
        uploadedFiles: files.length - reusedFiles,
        reusedFiles,
        uploadedBytes: this.#uploadedBytes,
        reusedBytes: this.#reusedBytes,
        skippedLayers: this.#skipped,
      },
    }
  }

  #told(currentPhase: 'hashing' | 'files' | 'manifest', processedFiles = this.#results.size): void {
    const processedBytes = this.#uploadedBytes + this.#reusedBytes
    const files = { processedFiles, totalFiles: this.options.files.length }
    this.say({ type: 'folder', ...files, processedBytes, totalBytes: this.#totalBytes, currentPhase })
  }

  /** Hashes every file. */
  async #entries(): Promise<Entry[]> {
    const { files, signal } = this.options
    const entries: Entry[] = []
    let hashed = 0
    await inParallel([...files.entries()], hashedAtOnce, async ([fileIndex, file]) => {
      throwIfAborted(signal)
      const place = { fileName: file.path, fileIndex, totalFiles: files.length }
      const hash = await toldFailure(this.say, place, () => this.#kept.hash(file, smallBytesMax))
      entries[fileIndex] = { file, place, key: { hash, tags: this.#tags(file.contentType, hash) } }
      this.#told('hashing', ++hashed)
    })
    return entries
  }

  #tags(contentType: string | undefined, hash: string): TextTag[] {
    return [
      ...this.#typed(contentType, this.options.dataItemOpts?.tags ?? []),
      { name: hashTag, value: hash },
    ]
  }

  #typed(contentType: string | undefined, more: readonly TextTag[]): TextTag[] {
    const isTyped =
      contentType === undefined || more.some(({ name }) => name.toLowerCase() === 'content-type')
    return isTyped ? [...more] : [{ name: 'Content-Type', value: contentType }, ...more]
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
    this.#kept.forget(file)
    this.#results.set(file.path, { path: file.path, id, reused: true })
    this.#reusedBytes += file.source.size
    this.say({ type: 'file-complete', ...place, id })
    this.#told('files')
  }

  /** Which files go together, and which alone. */
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

  /** Bundles are signed one behind the other: one is signed while the other is on its way. Both at once would wait for both. */
  #signed(entries: readonly Entry[]): Promise<{ id: string; bytes: Uint8Array }[]> {
    const signed = this.#signing.then(() => this.#sign(entries))
    this.#signing = signed.catch((error) => error)
    return signed
  }

  async #sign(entries: readonly Entry[]): Promise<{ id: string; bytes: Uint8Array }[]> {
    const items: { id: string; bytes: Uint8Array }[] = []
    await inParallel([...entries.entries()], hashedAtOnce, async ([at, { file, place, key }]) => {
      throwIfAborted(this.options.signal)
      this.say({ type: 'file-start', ...place, fileSize: file.source.size })
      items[at] = await toldFailure(this.say, place, async () => {
        const bytes = this.#kept.bytes(file, key.hash) ?? (await allBytes(this.#kept.content(file, key.hash)))
        this.#kept.forget(file)
        return signedItem(bytes, { tags: key.tags }, this.#itemSigner)
      })
    })
    return items
  }

  async #uploadBundle(entries: readonly Entry[]): Promise<void> {
    const items = await this.#signed(entries)
    const data = packBundle(items)
    const { dataItemOpts, events: _, ...options } = this.options
    const paidBy = dataItemOpts?.paidBy
    const ids = entries.map(({ key }, at) => [key, items[at]?.id ?? ''] as const)
    try {
      await this.client.upload({
        ...options,
        data,
        dataItemOpts: { tags: bundleTags, ...(paidBy && { paidBy }) },
        onReceipt: () => this.#remember(ids),
      })
    } catch (error) {
      // Each file was begun, so each hears its end.
      for (const { place } of entries) this.say({ type: 'file-error', ...place, error: asClientError(error) })
      throw error
    }
    for (const [at, entry] of entries.entries()) this.#done(entry, items[at]?.id ?? '')
  }

  async #remember(uploaded: readonly (readonly [key: FileKey, id: string])[]): Promise<void> {
    for (const layer of this.#layers) await layer.remember?.(uploaded)
  }

  #done({ file, place }: Entry, id: string, receipt?: UploadResult): void {
    this.#kept.forget(file)
    this.#results.set(file.path, { path: file.path, id, reused: false, ...(receipt && { receipt }) })
    this.#uploadedBytes += file.source.size
    this.say({ type: 'file-complete', ...place, id })
    this.#told('files')
  }

  async #uploadOne(entry: Entry): Promise<void> {
    const { file, place, key } = entry
    this.say({ type: 'file-start', ...place, fileSize: file.source.size })
    const { dataItemOpts, events: _, files: __, ...options } = this.options
    const receipt = await toldFailure(this.say, place, async () => {
      const task = this.client.upload({
        ...options,
        data: this.#kept.content(file, key.hash),
        dataItemOpts: { ...dataItemOpts, tags: key.tags },
        onReceipt: ({ id }) => this.#remember([[key, id]]),
      })
      for await (const event of task) {
        if (event.type !== 'signing' && event.type !== 'upload') continue
        const bytes = { fileProcessedBytes: event.processedBytes, fileTotalBytes: event.totalBytes }
        this.say({ type: 'file-progress', ...place, ...bytes, step: event.type })
      }
      return task
    })
    this.#done(entry, receipt.id, receipt)
  }

  async #uploadManifest(manifest: PathManifest): Promise<FolderFileResult> {
    this.#told('manifest')
    const source = sourceOfBytes(utf8(JSON.stringify(manifest)))
    const { manifestDataItemOpts: own, dataItemOpts, events: _, files: __, ...options } = this.options
    const hash = await contentHash(source)
    const key = { hash, tags: this.#typed(pathManifestType, own?.tags ?? []) }
    const journal = this.#layers[0] as FolderIndexLayer
    const known = await this.#asked(journal, [
      { file: { path: '', source }, place: { fileName: '', fileIndex: 0, totalFiles: 0 }, key },
    ])
    const id = known.get(keyText(key))
    if (id !== undefined && (await this.#isPresent(id))) return { path: '', id, reused: true }
    const paidBy = own?.paidBy ?? dataItemOpts?.paidBy
    const receipt = await this.client.upload({
      ...options,
      data: source,
      dataItemOpts: { ...own, tags: key.tags, ...(paidBy && { paidBy }) },
      onReceipt: async (told) => journal.remember?.([[key, told.id]]),
    })
    return { path: '', id: receipt.id, reused: false, receipt }
  }
}

/** Files of the same bytes and tags go once: the first of each kind, and the others with theirs. */
function withoutTwins(entries: readonly Entry[]): readonly [Entry[], (readonly [Entry, Entry])[]] {
  const first = new Map<string, Entry>()
  const twins: (readonly [Entry, Entry])[] = []
  for (const entry of entries) {
    const text = keyText(entry.key)
    const known = first.get(text)
    if (known === undefined) first.set(text, entry)
    else twins.push([entry, known])
  }
  return [[...first.values()], twins]
}

/** Several at once. After a failure nothing new is begun; what is under way ends first, and is in the journal. */
async function inParallel<One>(
  list: readonly One[],
  atOnce: number,
  work: (one: One) => Promise<void>,
): Promise<void> {
  const waiting = list.values()
  const failures: unknown[] = []
  const worker = async (): Promise<void> => {
    for (const one of waiting) {
      if (failures.length > 0) return
      try {
        await work(one)
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  if (failures.length > 0) throw failures[0]
}
