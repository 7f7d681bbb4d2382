import { wincOf } from './amounts.js'
import { bundleTags, packBundle } from './bundle-layout.js'
import { utf8 } from './bytes.js'
import type { SluiceClient, UploadOptions } from './client.js'
import { payloadDigest } from './deep-digest.js'
import { asClientError, ClientError } from './errors.js'
import { contentHash, type FileKey, type FolderIndexLayer, hashTag, keyText } from './folder-index.js'
import { bundleBytesOf, type FolderPlan, manifestBytesOf } from './folder-plan.js'
import { FolderReuse } from './folder-reuse.js'
import { KeptFiles } from './kept-files.js'
import { inParallel } from './parallel.js'
import { type ManifestChoice, manifestOf, type PathManifest, pathManifestType } from './path-manifest.js'
import { allBytes, type PayloadSource, sourceOfBytes } from './payload.js'
import { type DataItemOptions, itemSizeOf, signedItem } from './prepare.js'
import { addressOfOwner, type ClientSigner } from './signer.js'
import type { TextTag } from './tags.js'
import { type Emit, type FilePlace, reportingFailure, UploadTask } from './task.js'
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
  /**
   * Whether an id that the journal or a layer knows is still there; called before it is reused. By default, the upload service
   * is queried first, and then the first gateway.
   */
  readonly isPresent?: (id: string) => Promise<boolean>
  /**
   * Called with the plan before anything is sent. Resolves with the most winc that all of it may cost; undefined: no limit.
   * Nothing is uploaded where it rejects. The upload ends when more than that is charged.
   */
  readonly onPlan?: (plan: FolderPlan) => Promise<bigint | undefined>
  /** Files up to 256 KiB go together in one item that is a bundle. Services that give small items away charge for the bundle. */
  readonly bundleSmallFiles?: boolean
  /** Signs the items within bundles, where the client's own signer would need a confirmation for each: a session key. */
  readonly itemSigner?: ClientSigner
  /** 5 by default. */
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
  /** What was charged for all of it, the manifest included. */
  readonly winc: string
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
  return new UploadTask('folder', options.events, (emit) => new FolderUpload(client, options, emit).run())
}

class FolderUpload {
  readonly #itemSigner: ClientSigner
  readonly #signer: ClientSigner
  readonly #reuse: FolderReuse
  readonly #results = new Map<string, FolderFileResult>()
  readonly #kept = new KeptFiles()
  /** Ends with the bundle that is being signed. */
  #signing: Promise<unknown> = Promise.resolve()
  readonly #totalBytes: number
  #uploadedBytes = 0
  #reusedBytes = 0
  #charged = 0n
  #maxWinc: bigint | undefined

  constructor(
    private readonly client: SluiceClient,
    private readonly options: FolderOptions,
    private readonly emit: Emit,
  ) {
    const { currentSigner } = client
    if (currentSigner === undefined)
      throw new ClientError('no-signer', 'an upload needs a signer', 'give the client a signer')
    this.#itemSigner = options.itemSigner ?? currentSigner
    this.#signer = currentSigner
    const notice = (message: string): void => emit({ type: 'notice', message })
    this.#reuse = new FolderReuse(client, addressOfOwner(currentSigner.owner), options, notice)
    this.#totalBytes = options.files.reduce((sum, { source }) => sum + source.size, 0)
  }

  async run(): Promise<FolderResult> {
    const { files, manifest: choice = {} } = this.options
    if (files.length === 0)
      throw new ClientError('invalid-input', 'the folder has no files', 'give at least one file')
    if (new Set(files.map(({ path }) => path)).size < files.length)
      throw new ClientError('invalid-input', 'two files have one path', 'give each file a path of its own')
    const [first, duplicates] = withoutDuplicates(await this.#missing(await this.#entries()))
    const [bundled, single] = this.#sorted(first)
    await this.#plan(bundled, single, duplicates.length)
    await inParallel(bundled, bundlesAtOnce, (group) => this.#uploadBundle(group))
    await inParallel(single, this.options.maxConcurrentUploads ?? 5, (entry) => this.#uploadOne(entry))
    for (const [entry, original] of duplicates)
      this.#reused(entry, this.#results.get(original.file.path)?.id ?? '')
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
        skippedLayers: this.#reuse.skipped,
        winc: String(this.#charged),
      },
    }
  }

  #report(currentPhase: 'hashing' | 'files' | 'manifest', processedFiles = this.#results.size): void {
    const processedBytes = this.#uploadedBytes + this.#reusedBytes
    const files = { processedFiles, totalFiles: this.options.files.length }
    this.emit({ type: 'folder', ...files, processedBytes, totalBytes: this.#totalBytes, currentPhase })
  }

  /** Hashes every file. */
  async #entries(): Promise<Entry[]> {
    const { files, signal } = this.options
    const entries: Entry[] = []
    let hashed = 0
    await inParallel([...files.entries()], hashedAtOnce, async ([fileIndex, file]) => {
      throwIfAborted(signal)
      const place = { fileName: file.path, fileIndex, totalFiles: files.length }
      const hash = await reportingFailure(this.emit, place, () => this.#kept.hash(file, smallBytesMax))
      const payload = () => payloadDigest(this.#kept.content(file, hash).open(0))
      entries[fileIndex] = { file, place, key: { hash, tags: this.#tags(file.contentType, hash), payload } }
      this.#report('hashing', ++hashed)
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
  async #missing(entries: readonly Entry[]): Promise<Entry[]> {
    const found = await this.#reuse.find(entries.map(({ key }) => key))
    return entries.filter((entry) => {
      const id = found.get(keyText(entry.key))
      if (id !== undefined) this.#reused(entry, id)
      return id === undefined
    })
  }

  /** States what will be sent. */
  async #plan(bundled: readonly Entry[][], single: readonly Entry[], duplicates: number): Promise<void> {
    const { files, manifest: choice = {}, onPlan, manifestDataItemOpts = {} } = this.options
    if (onPlan === undefined) return
    const planned = ({ file, key }: Entry) => ({ bytes: file.source.size, tags: key.tags })
    const sizes = [
      ...bundled.map((group) => bundleBytesOf(group.map(planned), this.#itemSigner, this.#signer)),
      ...single.map((entry) => {
        const { bytes, tags } = planned(entry)
        return itemSizeOf(bytes, { ...this.options.dataItemOpts, tags }, this.#signer)
      }),
    ]
    if (choice !== false && !(sizes.length === 0 && (await this.#isManifestThere(choice)))) {
      const paths = files.map(({ path }) => path)
      sizes.push(manifestBytesOf(paths, choice, this.#manifestOptions(manifestDataItemOpts), this.#signer))
    }
    const uploaded = bundled.flat().length + single.length
    this.#maxWinc = await onPlan({
      itemBytes: sizes,
      itemsInside: bundled.flat().length,
      files: uploaded,
      reusedFiles: files.length - uploaded - duplicates,
    })
  }

  #reused({ file, place }: Entry, id: string): void {
    this.#kept.forget(file)
    this.#results.set(file.path, { path: file.path, id, reused: true })
    this.#reusedBytes += file.source.size
    this.emit({ type: 'file-complete', ...place, id })
    this.#report('files')
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
      this.emit({ type: 'file-start', ...place, fileSize: file.source.size })
      items[at] = await reportingFailure(this.emit, place, async () => {
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
      const receipt = await this.client.upload({
        ...options,
        data,
        dataItemOpts: { tags: bundleTags, ...(paidBy && { paidBy }) },
        onReceipt: ({ id }) => this.#reuse.remember(ids, id),
      })
      this.#charge(receipt)
    } catch (error) {
      // Each file has a start event, so each gets an end event.
      for (const { place } of entries)
        this.emit({ type: 'file-error', ...place, error: asClientError(error) })
      throw error
    }
    for (const [at, entry] of entries.entries()) this.#done(entry, items[at]?.id ?? '')
  }

  /** The receipt's word of what was charged, and the end where that is more than was allowed. */
  #charge({ winc }: Pick<UploadResult, 'winc'>): void {
    this.#charged += wincOf(winc)
    const most = this.#maxWinc
    if (most === undefined || this.#charged <= most) return
    const found = `the service has charged ${this.#charged} winc by now, more than the ${most} that were quoted`
    const advice = 'ask for the price again; a repetition goes on where this one stopped'
    throw new ClientError('rejected', found, advice)
  }

  #done({ file, place }: Entry, id: string, receipt?: UploadResult): void {
    this.#kept.forget(file)
    this.#results.set(file.path, { path: file.path, id, reused: false, ...(receipt && { receipt }) })
    this.#uploadedBytes += file.source.size
    this.emit({ type: 'file-complete', ...place, id })
    this.#report('files')
  }

  async #uploadOne(entry: Entry): Promise<void> {
    const { file, place, key } = entry
    this.emit({ type: 'file-start', ...place, fileSize: file.source.size })
    const { dataItemOpts, events: _, files: __, ...options } = this.options
    const receipt = await reportingFailure(this.emit, place, async () => {
      const task = this.client.upload({
        ...options,
        data: this.#kept.content(file, key.hash),
        dataItemOpts: { ...dataItemOpts, tags: key.tags },
        onReceipt: ({ id }) => this.#reuse.remember([[key, id]], id),
      })
      for await (const event of task) {
        if (event.type !== 'signing' && event.type !== 'upload') continue
        const bytes = { fileProcessedBytes: event.processedBytes, fileTotalBytes: event.totalBytes }
        this.emit({ type: 'file-progress', ...place, ...bytes, step: event.type })
      }
      const result = await task
      this.#charge(result)
      return result
    })
    this.#done(entry, receipt.id, receipt)
  }

  async #uploadManifest(manifest: PathManifest): Promise<FolderFileResult> {
    this.#report('manifest')
    const source = sourceOfBytes(utf8(JSON.stringify(manifest)))
    const { manifestDataItemOpts: own = {}, dataItemOpts, events: _, files: __, ...options } = this.options
    const key = { hash: await contentHash(source), tags: this.#manifestOptions(own).tags }
    const known = (await this.#reuse.findInJournal([key])).get(keyText(key))
    if (known !== undefined) return { path: '', id: known, reused: true }
    const paidBy = own.paidBy ?? dataItemOpts?.paidBy
    const receipt = await this.client.upload({
      ...options,
      data: source,
      dataItemOpts: { ...own, tags: key.tags, ...(paidBy && { paidBy }) },
      onReceipt: ({ id }) => this.#reuse.rememberHere(key, id),
    })
    this.#charge(receipt)
    return { path: '', id: receipt.id, reused: false, receipt }
  }

  #manifestOptions(own: DataItemOptions): DataItemOptions & { readonly tags: TextTag[] } {
    return { ...own, tags: this.#typed(pathManifestType, own.tags ?? []) }
  }

  /** Whether the manifest was uploaded before: all of its files have their ids. */
  async #isManifestThere(choice: ManifestChoice): Promise<boolean> {
    const ids = new Map(this.options.files.map(({ path }) => [path, this.#results.get(path)?.id ?? '']))
    const source = sourceOfBytes(utf8(JSON.stringify(manifestOf(ids, choice))))
    const { tags } = this.#manifestOptions(this.options.manifestDataItemOpts ?? {})
    const key = { hash: await contentHash(source), tags }
    return (await this.#reuse.findInJournal([key])).has(keyText(key))
  }
}

/** Files of the same bytes and tags go once: the first of each kind, and the others with theirs. */
function withoutDuplicates(entries: readonly Entry[]): readonly [Entry[], (readonly [Entry, Entry])[]] {
  const first = new Map<string, Entry>()
  const duplicates: (readonly [Entry, Entry])[] = []
  for (const entry of entries) {
    const text = keyText(entry.key)
    const known = first.get(text)
    if (known === undefined) first.set(text, entry)
    else duplicates.push([entry, known])
  }
  return [[...first.values()], duplicates]
}
