import { Backoff } from '../actor/backoff.js'
import type { Clock } from '../actor/clock.js'
import { type Id, parseId } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { orLate } from '../http/sender-pace.js'
import type { Asks } from '../http/upstream.js'
import { isNearAddress } from '../torrent/compact-peers.js'
import { type IndexPartition, manifestMaxBytes, readIndexManifest } from './index-manifest.js'
import { type ContentSource, contentRanges, fetchDocument, httpRanges, type Ranges } from './ranges.js'
import { RemoteCdb, type RemoteOptions, RemoteReads } from './remote-index.js'
import type { RootRecord } from './root-record.js'

/** Location of an index that is not among our bands, from a setting. */
export type IndexSource =
  /** File, folder with a manifest, or folder of such. */
  | { readonly kind: 'path'; readonly path: string }
  /** One file, or, where the address ends in `/manifest.json`, an index in partitions. */
  | { readonly kind: 'http'; readonly url: string; readonly partitioned: boolean }
  /** Content of the chain, or a stretch of it. */
  | {
      readonly kind: 'content'
      readonly id: Id
      readonly region?: { readonly offset: number; readonly sizeBytes: number }
      readonly partitioned: boolean
    }

/** Reads `path`, `http(s)://...`, `id`, `id:offset:size`, each of the latter two with `:manifest` behind it or not. */
export function readIndexSource(text: string): IndexSource | undefined {
  if (/^https?:\/\//.test(text)) {
    if (!URL.canParse(text)) return undefined
    const { pathname, username, password, hash, href } = new URL(text)
    if (username !== '' || password !== '' || hash !== '') return undefined
    return { kind: 'http', url: href, partitioned: pathname.endsWith('/manifest.json') }
  }
  const [, word = '', offset, size, manifest] =
    /^([A-Za-z0-9_-]{43})(?::(\d{1,16}):(\d{1,16}))?(:manifest)?$/.exec(text) ?? []
  const id = parseId(word)
  if (id === undefined) return /^[\w.~/][^\0]*$/.test(text) ? { kind: 'path', path: text } : undefined
  const region = offset === undefined ? {} : { region: { offset: Number(offset), sizeBytes: Number(size) } }
  return { kind: 'content', id, ...region, partitioned: manifest !== undefined }
}

export interface SourceParts {
  readonly upstream: Asks
  readonly content: ContentSource
  readonly clock: Clock
  readonly options: RemoteOptions
}

/** Which file knows an id, by its first byte. */
type Opening = ((first: number) => RemoteCdb | undefined) | Refusal

/** Timeout of a manifest, which has some thousand bytes. */
const manifestMs = 30_000

/** One remote index. While what all ids need of it cannot be read, it gets no requests for a while. */
export class RemoteIndex {
  readonly name: string
  readonly #reads: RemoteReads
  /** Files of which a read failed for one id, while their headers are read again. */
  readonly #doubted = new Set<RemoteCdb>()
  readonly #rest: Backoff
  /** Longest time of reading one stretch, or the manifest. */
  readonly #readMs: number
  #opening: Promise<Opening> | undefined

  constructor(
    private readonly source: Exclude<IndexSource, { kind: 'path' }>,
    private readonly parts: SourceParts,
  ) {
    this.name = source.kind === 'http' ? source.url : source.id
    const { clock, options } = parts
    const { coolMs, httpMs, contentMs } = options
    this.#readMs = source.kind === 'http' ? httpMs : contentMs
    this.#rest = new Backoff({ failuresMax: 1, restMs: coolMs, restMaxMs: coolMs }, clock)
    this.#reads = new RemoteReads(clock, options, this.#readMs)
  }

  /** Where the item (32 bytes of id) is; undefined where this index does not know it. Reads take turns. Never rejects. */
  async find(id: Uint8Array, client: string): Promise<RootRecord | undefined | Refusal> {
    if (this.#rest.isDue && this.#rest.isOn) return undefined
    // One call tries whether the index works again; the others return at once meanwhile.
    if (this.#rest.isDue) this.#rest.hold(2 * this.#readMs)
    const begunMs = this.parts.clock.monotonic()
    const file = await this.#fileOf(id)
    const found = isRefusal(file) ? file : await file?.find(id, client)
    if (isRefusal(found) && file instanceof RemoteCdb) void this.#doubt(file, begunMs)
    else this.#judge(found, begunMs)
    return found
  }

  /** What failed for one id says nothing about others, which may be a stranger's choice: the header decides. */
  async #doubt(file: RemoteCdb, begunMs: number): Promise<void> {
    if (this.#doubted.has(file)) return
    this.#doubted.add(file)
    this.#judge(await file.reopen(), begunMs)
    this.#doubted.delete(file)
  }

  #judge(outcome: object | undefined, begunMs: number): void {
    if (!isRefusal(outcome)) this.#rest.well()
    else if (outcome.refused !== 'busy' && !this.#rest.wasWellSince(begunMs)) this.#rest.failed()
  }

  /** The file for this id with its header read; undefined: there is none. */
  async #fileOf(id: Uint8Array): Promise<RemoteCdb | undefined | Refusal> {
    const fileOf = await this.#open()
    if (isRefusal(fileOf)) return fileOf
    const file = fileOf(id[0] as number)
    const opened = await file?.open()
    return isRefusal(opened) ? opened : file
  }

  /** A manifest that takes too long goes on loading, and may be there after the pause. */
  #open(): Promise<Opening> {
    if (!this.source.partitioned) return Promise.resolve(this.#single())
    this.#opening ??= this.#openManifest().then((opened) => {
      if (isRefusal(opened)) this.#opening = undefined
      return opened
    })
    const late = refuse('late', 'upstream', `${this.name}: the manifest did not arrive`)
    return orLate(this.#opening, this.#readMs, late, this.parts.clock)
  }

  #single(): () => RemoteCdb {
    const { source, parts } = this
    const ranges =
      source.kind === 'http'
        ? httpRanges(source.url, parts.upstream, this.#readMs)
        : contentRanges(parts.content, source.id, source.region)
    const file = new RemoteCdb(this.name, ranges, this.#reads)
    return () => file
  }

  async #openManifest(): Promise<Opening> {
    const bytes = await this.#manifestBytes()
    if (isRefusal(bytes)) return bytes
    const manifest = readIndexManifest(bytes)
    if (isRefusal(manifest)) return manifest
    const files = new Map<number, RemoteCdb>()
    for (const partition of manifest.partitions) {
      const ranges = this.#rangesOf(partition)
      if (ranges === undefined)
        return refuse('malformed', 'upstream', `${this.name}: a file that is not beside it`)
      const name = `${this.name} ${partition.prefix}`
      files.set(
        Number.parseInt(partition.prefix, 16),
        new RemoteCdb(name, ranges, this.#reads, partition.size),
      )
    }
    return (first) => files.get(first)
  }

  async #manifestBytes(): Promise<Uint8Array | Refusal> {
    const { source, parts } = this
    if (source.kind === 'http') return fetchDocument(source.url, parts.upstream, manifestMaxBytes, manifestMs)
    const ranges = contentRanges(parts.content, source.id, source.region)
    const [start] = await this.#sizeOf(ranges)
    const size = source.region?.sizeBytes ?? start
    if (size === undefined || size > manifestMaxBytes) {
      return refuse('too-large', 'upstream', `${this.name}: no manifest of a size that is read`)
    }
    const read = await this.#reads.whole(ranges, 0, size)
    return isRefusal(read) ? read : read.bytes
  }

  async #sizeOf(ranges: Ranges): Promise<[number] | []> {
    const read = await this.#reads.whole(ranges, 0, 1)
    return isRefusal(read) ? [] : [read.sizeBytes]
  }

  /**
   * A manifest from elsewhere could otherwise make this gateway send requests into its own network. Host names are taken to be
   * public.
   */
  #mayName(url: string): boolean {
    const isOwn = this.source.kind === 'http' && isNearAddress(new URL(this.source.url).hostname)
    return isOwn || !isNearAddress(new URL(url).hostname)
  }

  /** Files are those beside the manifest, so a manifest of the chain has none. */
  #rangesOf({ location, size }: IndexPartition): Ranges | undefined {
    const { upstream, content, options } = this.parts
    switch (location.type) {
      case 'file':
        return this.source.kind === 'http'
          ? httpRanges(new URL(location.filename, this.source.url).href, upstream, options.httpMs)
          : undefined
      case 'http':
        return /^https?:\/\//.test(location.url) && URL.canParse(location.url) && this.#mayName(location.url)
          ? httpRanges(location.url, upstream, options.httpMs)
          : undefined
      case 'arweave-id':
        return parsed(location.id, (id) => contentRanges(content, id))
      case 'arweave-byte-range':
        return parsed(location.rootTxId, (id) => {
          return contentRanges(content, id, { offset: location.dataOffsetInRootTx, sizeBytes: size })
        })
    }
  }
}

function parsed(text: string, act: (id: Id) => Ranges): Ranges | undefined {
  const id = parseId(text)
  return id === undefined ? undefined : act(id)
}
