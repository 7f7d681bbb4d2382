import type { KeyPlaces } from '../attest/keys.js'
import type { BandFinderOptions } from './finder.js'
import type { L1Schedule } from './l1-builder.js'
import type { PublishOptions } from './publisher.js'
import type { HttpRangesOptions } from './ranges.js'
import type { RemoteOptions } from './remote-index.js'
import type { RootBuildOptions } from './root-builder.js'

/** What `workers/bands.ts` is started with. It answers no messages: edge threads read its files from disk. */
export interface BandsThread {
  /** `DATA_PATH/bands`. */
  readonly root: string
  readonly catalogPath: string
  readonly generations: SharedArrayBuffer
  readonly signing: KeyPlaces
  /** Undefined: the address of the key. */
  readonly publisher?: string
  readonly publish: Omit<PublishOptions, 'publisher' | 'torrentsPath' | 'trackers'>
  /** Undefined: bands are offered without torrents. Else trackers to be named in .torrent files. */
  readonly trackers?: readonly string[]
  /** The tracker of this gateway, for magnets. Undefined: no host is set. */
  readonly ownTracker?: string | undefined
  readonly build: Omit<RootBuildOptions, 'publisher'>
  /** Undefined: no Parquet bands are built here. */
  readonly l1?: Omit<L1Schedule, 'publisher'>
  /** Between two looks at what is due and what is there. */
  readonly scanMs: number
  readonly logLevel: string
}

/** Data about bands for edge threads. */
export interface BandsReading {
  /** `DATA_PATH/bands`. */
  readonly root: string
  readonly published: boolean
  readonly finder: BandFinderOptions
  readonly remote: RemoteOptions
  readonly http: HttpRangesOptions
}
