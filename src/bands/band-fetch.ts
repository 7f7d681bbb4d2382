import { mkdir, readdir, readFile, rm, statfs, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, pause } from '../actor/clock.js'
import { isEntryName } from '../format/entry-name.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { isMissing } from '../store/blobs.js'
import { isNearAddress } from '../torrent/compact-peers.js'
import type { Dht } from '../torrent/dht.js'
import { Download, type DownloadOptions } from '../torrent/download.js'
import { trackerOf } from '../torrent/named-tracker.js'
import type { Torrent } from '../torrent/torrent.js'
import { readTorrent, torrentFileMaxBytes } from '../torrent/torrent-reader.js'
import { announceTo } from '../torrent/tracker-client.js'
import { udpTimeouts } from '../torrent/udp-announce.js'
import { get, type HttpOptions } from './follow.js'
import { fetchFiles } from './http-files.js'
import { bandTorrentName, isIndexName } from './index-names.js'
import { measureDigests } from './measure.js'
import type { Band } from './publication.js'
import { replaceFile } from './replace-file.js'

/** A band that a publisher lists and that is wanted here. */
export interface WantedBand {
  /** Address of the publisher's own routes: requests go only there, never to the addresses in its document. */
  readonly url: string
  readonly index: string
  readonly kind: string
  readonly band: Band
}

export interface BandFetchParts {
  readonly http: HttpOptions
  readonly clock: Clock
  readonly peerId: Buffer
  readonly download: Omit<DownloadOptions, 'isNear'>
  /**
   * Used besides the publisher's own tracker: those from the settings (`dht:`: the distributed hash table), never
   * those that a torrent names.
   */
  readonly trackers: readonly string[]
  readonly dht?: Dht | undefined
}

/** The size of all files of a band, bytes. */
export function bandBytes({ files }: Band): number {
  return files.reduce((sum, { size }) => sum + size, 0)
}

/** Bytes of the disk that are always left free. */
const freeBytesMin = 512 << 20

/** Pause after a tracker knew no peers: at first the shorter one; it doubles each time, up to the longer one. */
const [emptyMinSeconds, emptyMaxSeconds] = [20, 160]

/** Fetches the files of one band; resumes what an earlier process left on disk. */
export class BandFetch {
  #download: Download | undefined
  readonly #end = new AbortController()
  /** Folder of the files. */
  readonly folder: string
  /** Where its .torrent file is, if it came by torrent. */
  readonly torrentPath: string

  constructor(
    readonly wanted: WantedBand,
    /** `fetchPlace` of the band. */
    place: string,
    private readonly parts: BandFetchParts,
  ) {
    this.folder = join(place, 'files')
    this.torrentPath = join(place, 'torrent')
  }

  stop(): void {
    this.#end.abort()
    this.#download?.stop()
  }

  get peers(): number {
    return this.#download?.peers ?? 0
  }

  /** The pieces that are here of a band that is fetched by torrent, which can be seeded already. */
  get begun(): { readonly infohashV1: string; has(piece: number): boolean } | undefined {
    const download = this.#download
    if (download === undefined || this.wanted.band.torrent === undefined) return undefined
    return {
      infohashV1: this.wanted.band.torrent.infohashV1,
      has: (piece) => download.store.has(piece),
    }
  }

  /**
   * Undefined: all files are in the folder, and their digests are those of the signed document. `forged`: digests
   * were wrong, and the files were removed. Other refusals: try again later. Rejects where writing fails.
   */
  async run(): Promise<Refusal | undefined> {
    const { band } = this.wanted
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const { bavail, bsize } = await statfs(this.folder)
    if (bavail * bsize < bandBytes(band) + freeBytesMin) {
      return refuse('busy', 'self', `no room on the disk for ${band.id}`)
    }
    await this.#dropOthers()
    const torrent = await this.#torrent()
    if (torrent !== undefined && !isRefusal(torrent)) {
      return (await this.#swarm(torrent)) ?? (await this.#compare())
    }
    const first = (await this.#plain()) ?? (await this.#compare())
    // Files left by an earlier process may have been wrong; they are removed now, so one more attempt starts from nothing.
    return first?.refused === 'forged' ? ((await this.#plain()) ?? (await this.#compare())) : first
  }

  /** Nothing but the band's files may lie in its folder. */
  async #dropOthers(): Promise<void> {
    const names = new Set(this.wanted.band.files.map(({ name }) => name))
    for (const name of await readdir(this.folder)) {
      if (!names.has(name)) await rm(join(this.folder, name), { recursive: true })
    }
  }

  /** The torrent that the document names by its infohashes, kept beside the files. Undefined: the band has none. */
  async #torrent(): Promise<Torrent | Refusal | undefined> {
    const { band, url } = this.wanted
    if (band.torrent === undefined) return undefined
    const path = this.torrentPath
    const kept = await readFile(path).catch((error: unknown) => {
      if (isMissing(error)) return undefined
      throw error
    })
    const known = kept === undefined ? undefined : matching(readTorrent(kept), band)
    if (known !== undefined && !isRefusal(known)) return known
    const address = `${url}/indexes/torrents/${band.torrent.infohashV1}.torrent`
    const bytes = await get(address, torrentFileMaxBytes, this.parts.http, this.#end.signal)
    if (isRefusal(bytes)) return bytes
    const torrent = matching(readTorrent(bytes), band)
    if (!isRefusal(torrent)) await replaceFile(path, bytes)
    return torrent
  }

  async #swarm(torrent: Torrent): Promise<Refusal | undefined> {
    const { http: asking, clock, peerId, download: options } = this.parts
    const { url } = this.wanted
    // A public publisher could otherwise make us connect to machines in our own network, so private addresses are
    // left out.
    const { dispatcher, timeoutMs } = asking
    const web = { base: `${url}/indexes/webseed/`, dispatcher, timeoutMs }
    const isNear = isNearAddress(new URL(url).hostname)
    const download = new Download(torrent, this.folder, { ...options, isNear }, clock, peerId, web)
    this.#download = download
    const trackers = [trackerOf(url), ...this.parts.trackers]
    for (const tracker of trackers) void this.#ask(tracker, torrent, download)
    try {
      return (await download.run())
        ? undefined
        : refuse('late', 'upstream', 'the source sent nothing for too long')
    } catch (error) {
      if (this.#end.signal.aborted) return refuse('late', 'self', 'stopped')
      throw error
    } finally {
      this.#end.abort()
    }
  }

  /** Announces to a tracker until the end, and takes the peers that it answers with. */
  async #ask(url: string, torrent: Torrent, download: Download): Promise<void> {
    const { http: asking, clock, peerId, dht } = this.parts
    const { signal } = this.#end
    const parts = { ...asking, timeouts: udpTimeouts, clock, dht }
    let event: 'started' | undefined = 'started'
    let emptySeconds = emptyMinSeconds
    while (!signal.aborted) {
      const left = download.store.missingBytes
      const about = { url, infohashes: [torrent.infohashV1], peerId, port: 1, left }
      const announced = await announceTo(
        { ...about, ...(event === undefined ? {} : { event }) },
        parts,
        signal,
      )
      event = undefined
      download.addPeers(announced?.peers ?? [], url)
      const isEmpty = announced === undefined || announced.peers.length === 0
      await pause((isEmpty ? emptySeconds : announced.intervalSeconds) * 1000, signal)
      emptySeconds = isEmpty ? Math.min(emptySeconds * 2, emptyMaxSeconds) : emptyMinSeconds
    }
  }

  async #plain(): Promise<Refusal | undefined> {
    const { url, index, band } = this.wanted
    const base = `${url}/indexes/${index}/${band.id}/`
    const { http, clock } = this.parts
    return fetchFiles(base, band.files, this.folder, http, clock, this.#end.signal)
  }

  /** Compares the digests of all files with the document, which decides, wherever the files came from. */
  async #compare(): Promise<Refusal | undefined> {
    const { files } = this.wanted.band
    const { files: measured } = await measureDigests(
      this.folder,
      files.map(({ name }) => name),
    )
    const wrong = files.filter(({ size, sha256 }, index) => {
      return measured[index]?.sha256 !== sha256 || measured[index]?.size !== size
    })
    if (wrong.length === 0) return undefined
    for (const { name } of wrong) await unlink(join(this.folder, name))
    await rm(this.torrentPath, { force: true })
    return refuse('forged', 'upstream', `digest of ${wrong[0]?.name} is another than the document's`)
  }
}

/** The torrent, where it is the one that the band names and holds just its files. */
function matching(torrent: Torrent | Refusal, { torrent: named, files }: Band): Torrent | Refusal {
  if (isRefusal(torrent)) return torrent
  const other = refuse('forged', 'upstream', 'the torrent is not the one that the document names')
  if (named === undefined || torrent.infohashV1.toString('hex') !== named.infohashV1) return other
  if (named.infohashV2 !== undefined && torrent.infohashV2.toString('hex') !== named.infohashV2) return other
  const sizes = new Map(torrent.files.map(({ name, sizeBytes }) => [name, sizeBytes]))
  const isNamed = torrent.name === bandTorrentName(files)
  const same =
    isNamed && sizes.size === files.length && files.every(({ name, size }) => sizes.get(name) === size)
  return same ? torrent : other
}

/**
 * Folder in which a band is fetched. It is on the same file system as the bands in place, so that it can be renamed. It is not
 * emptied at start, so that the fetch can be resumed.
 */
export function fetchPlace(bandsPath: string, index: string, id: string): string {
  if (!isIndexName(index) || !isEntryName(id)) throw new RangeError(`not a band's name: ${index}/${id}`)
  return join(bandsPath, 'fetching', index, id)
}
