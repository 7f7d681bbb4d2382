import { randomBytes } from 'node:crypto'
import { link, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { SigningKey } from '../attest/keys.js'
import { canonicalJson } from '../format/canonical-json.js'
import { isRefusal } from '../format/refusal.js'
import { isMissing } from '../store/blobs.js'
import { magnetWith } from '../torrent/named-tracker.js'
import { indexOffer, type Offer, offerName, readStoredOffer, type StoredOffer } from './band-offer.js'
import type { BandStore } from './band-store.js'
import { bandBlobPath } from './blob-path.js'
import { signPublication } from './document.js'
import { Measurements } from './measurements.js'
import type {
  Band,
  BandKind,
  BandTorrent,
  Measure,
  OfferedBand,
  PublishedIndex,
  StoredBand,
} from './publication.js'
import { replaceFile } from './replace-file.js'

export interface PublishOptions {
  /** Base58 address of this gateway's wallet. */
  readonly publisher: string
  /** First line of the message that is signed. */
  readonly domain: string
  /** First segment of our paths: `/gateway`. */
  readonly pathPrefix: string
  /** How long a document is valid; it is renewed after half of that time. */
  readonly ttlMs: number
  /** A band that another replaced is kept so long. */
  readonly graceMs: number
  /** Folder of the .torrent files that measuring leaves; undefined: bands are offered without torrents. */
  readonly torrentsPath?: string
  /** Trackers that magnets name. */
  readonly trackers?: readonly string[]
}

interface Found extends StoredBand {
  readonly kind: string
  readonly band: Band
  readonly supersedes: readonly string[]
  readonly stamps: StoredOffer['files']
}

/** Offers the bands that were built here: the signed document, and the files behind it by their digests. */
export class Publisher {
  #offered: readonly OfferedBand[] = []
  readonly #measurements: Measurements
  readonly #replacedAt = new Map<string, number>()

  constructor(
    private readonly bandStore: BandStore,
    private readonly kinds: readonly BandKind[],
    measure: Measure,
    private readonly key: SigningKey,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly options: PublishOptions,
  ) {
    this.#measurements = new Measurements(join(bandStore.root, 'measured'), measure, options.torrentsPath)
  }

  /** What is offered since the last `publish`. */
  get offered(): readonly OfferedBand[] {
    return this.#offered
  }

  /**
   * Looks at the stored bands and replaces the document where bands came or went, or half of its time is over. Resolves with the
   * sequence of the document; 0 where there is none, as long as there was never a band. Rejects where the disk refuses.
   */
  async publish(): Promise<number> {
    const before = await this.#current()
    await this.#sweep(before)
    const found = await this.#scan()
    const replaced = new Set(
      found.flatMap(({ index, supersedes }) => supersedes.map((id) => `${index}/${id}`)),
    )
    const kept = found.filter(({ index, id }) => !replaced.has(`${index}/${id}`))
    await this.#drop(found.filter(({ index, id }) => replaced.has(`${index}/${id}`)))
    const indexes = this.#indexes(kept)
    if (before === undefined && indexes.length === 0) return 0
    const files: Record<string, StoredOffer['files'][string]> = {}
    for (const { stamps } of kept) Object.assign(files, stamps)
    const now = this.clock.now()
    const same =
      before !== undefined &&
      canonicalJson(before.document.indexes) === canonicalJson(indexes) &&
      this.#isOurs(before)
    const leftMs = (before?.expiresMs ?? now) - now
    // A document that is valid for longer than `ttlMs` was signed before the clock was set back, so it is replaced
    // too.
    const young = leftMs > this.options.ttlMs / 2 && leftMs <= this.options.ttlMs
    const offered = kept.map(({ index, kind, folder, band }) => ({ index, kind, folder, band }))
    for (const one of kept) await this.#expose(one, files)
    if (same && young && this.#hasStamps(before, files)) {
      this.#offered = offered
      return before.document.sequence
    }
    // At least the time in seconds, so that a gateway that lost its state continues above its earlier sequences:
    // followers refuse lower ones.
    const sequence = Math.max((before?.document.sequence ?? 0) + 1, Math.floor(now / 1000))
    const { publisher, domain, ttlMs } = this.options
    const document = signPublication(
      {
        version: 1,
        publisher,
        sequence,
        previousManifestSha256: before?.sha256 ?? null,
        issuedAt: new Date(now).toISOString(),
        expiresAt: new Date(now + ttlMs).toISOString(),
        indexes,
      },
      this.key,
      domain,
    )
    await replaceFile(
      join(this.bandStore.root, offerName),
      JSON.stringify({ document: document.toString(), files }),
    )
    this.#offered = offered
    this.log.info({ sequence, bands: kept.length }, 'the index publication was replaced')
    return sequence
  }

  async #current(): Promise<Offer | undefined> {
    try {
      const stored = readStoredOffer(await readFile(join(this.bandStore.root, offerName), 'utf8'))
      return stored === undefined ? undefined : indexOffer(stored)
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  #isOurs({ document }: Offer): boolean {
    const { publisher, signature } = document
    return publisher === this.options.publisher && signature.keyId === this.key.solanaAddress
  }

  #hasStamps({ byDigest }: Offer, files: StoredOffer['files']): boolean {
    return Object.entries(files).every(([sha256, { inode, modifiedNs }]) => {
      const stamp = byDigest.get(sha256)?.stamp
      return stamp?.inode === inode && stamp.modifiedNs === modifiedNs
    })
  }

  /** Every band of our own that is valid by its kind, measured. */
  async #scan(): Promise<Found[]> {
    const found: Found[] = []
    for (const stored of await this.bandStore.list('own')) {
      const kind = this.kinds.find(({ index }) => index === stored.index)
      if (kind === undefined) continue
      const account = await kind.describe(stored.folder)
      if (isRefusal(account)) {
        this.log.warn(
          { band: stored.id, reason: account.message },
          'a folder holds no valid band: it is not published',
        )
        continue
      }
      const { files, stamps, torrent } = await this.#measurements.of(stored, account.files)
      const { heightRange, records, metadata, supersedes } = account
      const band: Band = {
        id: stored.id,
        files,
        http: { baseUrl: `${this.options.pathPrefix}/indexes/${stored.index}/${stored.id}/` },
        ...(heightRange === undefined ? {} : { heightRange }),
        ...(records === undefined ? {} : { records }),
        ...(torrent === undefined ? {} : { torrent: this.#named(torrent) }),
        ...(metadata === undefined ? {} : { metadata }),
      }
      found.push({ ...stored, kind: kind.kind, band, supersedes, stamps })
    }
    return found
  }

  /** Whoever has a magnet alone finds peers by the trackers in it. */
  #named(torrent: BandTorrent): BandTorrent {
    return { ...torrent, magnet: magnetWith(torrent.magnet, this.options.trackers ?? []) }
  }

  #indexes(kept: readonly Found[]): PublishedIndex[] {
    return this.kinds.flatMap(({ kind, index: name }) => {
      const bands = kept.filter(({ index }) => index === name).map(({ band }) => band)
      return bands.length === 0 ? [] : [{ name, kind, bands }]
    })
  }

  /**
   * Makes hard links named by digest, so that a band that is removed or rebuilt cannot show other bytes under an old
   * digest.
   */
  async #expose({ folder, band }: Found, stamps: StoredOffer['files']): Promise<void> {
    for (const { name, sha256 } of band.files) {
      const path = bandBlobPath(this.bandStore.root, sha256)
      const [from, to] = await Promise.all([inodeOf(join(folder, name)), inodeOf(path)])
      // Two bands may hold the same bytes: the one whose stamp is published stands for both.
      if (from === to || String(from) !== stamps[sha256]?.inode) continue
      const draft = join(this.bandStore.root, 'tmp', randomBytes(12).toString('hex'))
      await link(join(folder, name), draft)
      await rename(draft, path)
    }
  }

  /**
   * Removes links that the document no longer names. It was replaced at least one round ago, so clients are not
   * directed to them any more.
   */
  async #sweep(offer: Offer | undefined): Promise<void> {
    const folder = join(this.bandStore.root, 'blobs')
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const name of await readdir(folder)) {
      if (offer?.byDigest.has(name) !== true) await rm(join(folder, name), { force: true })
    }
  }

  /** Removes bands whose successor has been offered for long enough. */
  async #drop(replaced: readonly Found[]): Promise<void> {
    const now = this.clock.monotonic()
    for (const band of replaced) {
      const name = `${band.index}/${band.id}`
      const since = this.#replacedAt.get(name) ?? now
      this.#replacedAt.set(name, since)
      if (now - since < this.options.graceMs) continue
      await this.bandStore.remove(band)
      await this.#measurements.forget(band)
      this.#replacedAt.delete(name)
      this.log.info({ band: band.id }, 'a band that another replaced was removed')
    }
  }
}

async function inodeOf(path: string): Promise<bigint | undefined> {
  try {
    return (await stat(path, { bigint: true })).ino
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
