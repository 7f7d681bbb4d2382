import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import type { Clock } from '../actor/clock.js'
import { isRefusal } from '../format/refusal.js'
import { bandBlobPath } from './blob-path.js'
import { readPublication } from './document.js'
import { bandTorrentName } from './index-names.js'
import type { BandFile, PublicationDocument } from './publication.js'

/** A file as it was when its digest was taken. */
export interface FileStamp {
  readonly inode: string
  readonly modifiedNs: string
}

/** What stands in `offer.json`: the document's bytes as text, and the file behind each digest. */
export interface StoredOffer {
  readonly document: string
  readonly files: Readonly<Record<string, FileStamp>>
}

const shape = z.object({
  document: z.string(),
  files: z.record(z.string(), z.object({ inode: z.string(), modifiedNs: z.string() })),
})

export const offerName = 'offer.json'

/** A file that is offered, and what it was when it was measured. */
export interface OfferedFile extends BandFile {
  readonly stamp: FileStamp
}

/** What is offered, as the routes look it up. */
export interface Offer {
  readonly bytes: Buffer
  readonly sha256: string
  readonly document: PublicationDocument
  readonly expiresMs: number
  readonly byDigest: ReadonlyMap<string, OfferedFile>
  /** `<index>/<band>/<file>`. */
  readonly byName: ReadonlyMap<string, OfferedFile>
  /** `<torrent name>/<file>`. */
  readonly bySeed: ReadonlyMap<string, OfferedFile>
  /** Infohashes (v1) whose .torrent files are offered. */
  readonly torrents: ReadonlySet<string>
}

/** Reads what was stored; undefined where it is not what was written. */
export function readStoredOffer(text: string): StoredOffer | undefined {
  try {
    const checked = shape.safeParse(JSON.parse(text))
    return checked.success ? checked.data : undefined
  } catch {
    return undefined
  }
}

/** Makes the look-up tables of an offer; undefined where its document is none. */
export function indexOffer({ document: text, files: stamps }: StoredOffer): Offer | undefined {
  const bytes = Buffer.from(text)
  const read = readPublication(bytes)
  if (isRefusal(read)) return undefined
  const byDigest = new Map<string, OfferedFile>()
  const byName = new Map<string, OfferedFile>()
  const bySeed = new Map<string, OfferedFile>()
  const torrents = new Set<string>()
  for (const { name: index, bands } of read.document.indexes) {
    for (const { id, files, torrent } of bands) {
      const seed = bandTorrentName(files)
      if (torrent !== undefined) torrents.add(torrent.infohashV1)
      for (const file of files) {
        const stamp = Object.hasOwn(stamps, file.sha256) ? stamps[file.sha256] : undefined
        const offered = { ...file, stamp: stamp ?? { inode: '', modifiedNs: '' } }
        byDigest.set(file.sha256, offered)
        byName.set(`${index}/${id}/${file.name}`, offered)
        bySeed.set(`${seed}/${file.name}`, offered)
      }
    }
  }
  const { document, sha256 } = read
  const expiresMs = Date.parse(document.expiresAt)
  return { bytes, sha256, document, expiresMs, byDigest, byName, bySeed, torrents }
}

/** A band that is seeded as a torrent. */
export interface SeededBand {
  readonly infohashV1: string
  readonly torrentPath: string
  /** Where a file of it lies; a path that is not there for names that it does not have. */
  path(name: string): string
}

/** The torrents of an offer; `root` is `DATA_PATH/bands`. Files are named by digest, so no other bytes can be sent for them. */
export function offeringsOf(offer: Offer | undefined, root: string): SeededBand[] {
  const bands = offer?.document.indexes.flatMap((index) => index.bands) ?? []
  return bands.flatMap(({ torrent, files }) => {
    if (torrent === undefined) return []
    const byName = new Map(files.map(({ name, sha256 }) => [name, sha256]))
    const { infohashV1 } = torrent
    const torrentPath = join(root, 'torrents', `${infohashV1}.torrent`)
    return [{ infohashV1, torrentPath, path: (name) => bandBlobPath(root, byName.get(name) ?? 'none') }]
  })
}

/** Interval at which the file of the offer is checked for changes. */
const believeMs = 1000

/** What is offered now. */
export interface BandOffers {
  /** `DATA_PATH/bands`. */
  readonly root: string
  /** Undefined where nothing is offered. */
  current(): Offer | undefined
}

/** The current offer, read from disk by each edge thread. */
export class OfferReader implements BandOffers {
  #offer: Offer | undefined
  #stamp = ''
  #lookAgain = Number.NEGATIVE_INFINITY

  /** `root` is `DATA_PATH/bands`. */
  constructor(
    readonly root: string,
    private readonly clock: Clock,
  ) {}

  /** What was read last stays while the file cannot be read. */
  current(): Offer | undefined {
    const now = this.clock.monotonic()
    if (now < this.#lookAgain) return this.#offer
    this.#lookAgain = now + believeMs
    const path = join(this.root, offerName)
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    const stamp = found === undefined ? '' : `${found.ino} ${found.mtimeNs} ${found.size}`
    if (stamp === this.#stamp) return this.#offer
    this.#stamp = stamp
    try {
      const stored = stamp === '' ? undefined : readStoredOffer(readFileSync(path, 'utf8'))
      this.#offer = stored === undefined ? undefined : indexOffer(stored)
    } catch {
      // The file was replaced between the two calls: the next look reads the new one, and until then the old offer is
      // used.
      this.#stamp = ''
    }
    return this.#offer
  }
}
