import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Address } from '../actor/mailbox-address.js'
import type { Meters } from '../actor/meter.js'
import type { SampleRings } from '../actor/sample-rings.js'
import type { Tip } from '../actor/shared.js'
import type { Admission } from '../admission/admission-port.js'
import type { Signer } from '../attest/answer-signature.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import type { BandOffers } from '../bands/band-offer.js'
import type { Catalog, CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import type { Name, Names } from '../names/names-port.js'
import type { ClientOf } from '../serving/in-slot.js'
import type { Route } from '../serving/route.js'
import type { Packed } from '../source/keeping/manifest-cache.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'
import type { ContentRequest, Hints, ManifestFrom } from '../source/source-messages.js'
import type { FileContent } from '../store/mapped.js'
import type { SegmentReader } from '../store/segments/segment-reader.js'
import type { SoundFiles } from '../store/sound-files.js'
import type { GatewayOptions } from './gateway-rules.js'
import type { Guard } from './guard.js'
import { LocalOnly } from './local-only.js'

/** Access of this edge thread to blobs on disk. */
export interface Blobs {
  /** Path of the blob with this SHA-256, whether or not it is there. */
  path(digest: Uint8Array): string
  /** The whole file at a path, or undefined where there is none (store/blob-files.ts). */
  open(path: string, sizeBytes: number, often: boolean): FileContent | undefined
  /** Small ones that have no file of their own. Absent: each has one. */
  readonly segments?: SegmentReader
}

/** Brings content that is not in the store, and checks what is (`TransferClient`, source/reading/transfer-client.ts). */
export interface Transfers {
  /** Resolves as soon as size and type are known; small payloads come whole and with a digest. Never rejects. */
  open(wanted: ContentRequest): Promise<OpenedContent | Refusal>
  /**
   * Whether the blob on disk has its digest. A false one is removed, and what the catalog says of it is no longer trusted,
   * when this resolves.
   */
  check(id: Id, digest: Uint8Array): Promise<boolean | Refusal>
  /**
   * Whether the item is what lies at its place in a bundle of the store; the catalog knows its digest then. Absent: nobody can
   * tell. Never rejects.
   */
  judgeItem?(id: Id): Promise<boolean | Refusal>
  /** The SHA-256 of a payload; it is brought whole where nobody here knows it. Never rejects. */
  digestOf(id: Id): Promise<Uint8Array | Refusal>
  /** The packed form of a manifest (store/packed-file.ts), made where there is none. Never rejects. */
  manifest(from: ManifestFrom, again: boolean): Promise<Packed | Refusal>
}

/** Looks up in bands where an item lies that the catalog does not know (bands/finder.ts). Never throws, never rejects. */
export interface Finder {
  find(id: Id, client: string): Hints | undefined | Promise<Hints | undefined>
}

/** What host names mean here. */
export interface HostOptions {
  /** Lower case. Requests for content by id under a foreign host are redirected to the first. */
  readonly rootHosts: readonly string[]
  /** Protocol of redirects. */
  readonly protocol: 'http' | 'https'
  /** Where this program listens. */
  readonly ownPort: number
  /** Content by id is redirected to its own host also from hosts without a label: root hosts, IP addresses, foreign hosts. */
  readonly sandboxBareHosts: boolean
  /** Content of the root hosts themselves; excludes `apexNames`. */
  readonly apexId?: Id
  /** Names of that content: one for all root hosts, or one for each. Empty: none. */
  readonly apexNames: readonly Name[]
  /** Upper limit of caching for an apex id, because the operator may choose another id. */
  readonly apexMaxSeconds: number
  /** Shown where nobody knows a name; before `notFoundName`. */
  readonly notFoundId?: Id
  readonly notFoundName?: Name
  readonly enforceUndernameLimit: boolean
}

/** The bands that this gateway gives away. */
export interface Offered {
  /** This gateway's address as everybody reaches it (`nearOrigin`); absent where no host is set. */
  readonly origin?: string
  readonly offers: BandOffers
  /** The whole file at a path, mapped; undefined where there is none. */
  readonly files: { open(path: string): FileContent | undefined }
}

export interface GatewayParts {
  readonly catalog: Catalog
  /** Gets the blobs that were served from time to time, so that eviction keeps them. */
  readonly keeper?: Address<CatalogRequest, CatalogReply>
  readonly transfers: Transfers
  readonly blobs: Blobs
  /** Which blobs were hashed. Absent: this thread alone knows. */
  readonly sound?: SoundFiles
  /** Undefined: answers are not signed. */
  readonly signer?: Signer
  readonly vocabulary: Vocabulary
  readonly tip: Tip
  readonly meters: Meters
  readonly log: Log
  readonly clock: Clock
  /** Absent: nobody is limited. */
  readonly admission?: Admission
  /** The client whose share of limited slots a request uses. */
  readonly clientOf: ClientOf
  /** Undefined: the host of a request is ignored, only its path counts. */
  readonly hostNames?: {
    readonly names: Names
    readonly hosts: HostOptions
    /** Whether this program is about to give a name that nobody knows a meaning. Absent: it gives none. */
    readonly isPrepared?: (name: Name) => boolean
  }
  /** Undefined: nothing is blocked. */
  readonly guard?: Guard
  readonly finder?: Finder
  /** Recent requests. */
  readonly resources?: SampleRings
  readonly routes?: readonly Route[]
  /** Indexes that are given away. Absent: there are none. */
  readonly offered?: Offered
  readonly options: GatewayOptions
}

/** The defaults of the options; an operator's settings go over them. */
export const gatewayDefaults: GatewayOptions = {
  cache: {
    defaultSeconds: 30,
    stableSeconds: 2_592_000,
    trustedSeconds: 43_200,
    unstableSeconds: 7200,
    notFoundSeconds: 60,
    blockedSeconds: 2_592_000,
    privateSizeBytes: 104_857_600,
    privateTypes: [],
  },
  tagHeaders: true,
  tagsMax: 100,
  tagBytesMax: 8192,
  operatorsOverTls: false,
  forkDepth: 18,
  ownHosts: [],
  release: 'sluice',
  hopsMax: 3,
  localOnly: new LocalOnly({ headers: ['ao-peer-port'], emptyUserAgent: true, userAgents: [], origins: [] }),
  checkWaitBytes: 67_108_864,
  entriesMaxBytes: 67_108_864,
  manifestMaxBytes: 16_777_216,
  manifestsOpenMax: 256,
  manifestQuestionsMax: 64,
}
