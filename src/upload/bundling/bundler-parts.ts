import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Meters } from '../../actor/meter.js'
import type { Broadcast } from '../../chain/broadcast.js'
import type { Chain } from '../../chain/chain.js'
import type { DataWitnesses } from '../../chain/data-witnesses.js'
import type { Id } from '../../format/id.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { Signing } from '../intake/signing.js'
import type { Uploads } from '../records/uploads.js'
import type { BundleRecord, Bundles } from './bundle-records.js'
import type { NextRules } from './next-bundle.js'
import type { ReadableDataParts } from './readable-data.js'

export interface BundlingRules extends NextRules {
  /** Between two looks at what is to be done. */
  readonly everyMs: number
  /** Confirmations after which nothing can take a block back. */
  readonly depth: number
  /** Between two questions about one transaction. */
  readonly lookMs: number
}

export interface BundlerParts extends Pick<ReadableDataParts, 'fromStore'> {
  readonly uploads: Uploads
  readonly bundles: Bundles
  readonly itemLog: DurableLog
  readonly logFolder: string
  readonly chain: Pick<Chain, 'tip' | 'price' | 'balance' | 'postTransaction' | 'agreedStatus'>
  readonly broadcast: Pick<Broadcast, 'chunk'>
  /** Nodes that show whether they have the data of a bundle: before, its bytes are not given up. */
  readonly witnesses: Pick<DataWitnesses, 'look'>
  readonly signing: Pick<Signing, 'data'>
  /** RSA modulus of the wallet. */
  readonly owner: Uint8Array
  readonly address: string
  readonly height: () => number | undefined
  /** Gets each transaction that is in a block, so that the gateway opens it. */
  readonly onMined: (id: Id) => void
  /** Gets each bundle that has become permanent. */
  readonly onPermanent?: (record: BundleRecord, height: number) => void
  readonly meters: Meters
  readonly clock: Clock
  readonly logger: Log
  readonly rules: BundlingRules
  /** Whether another machine has some of these items now; requested before each attempt to post. */
  readonly isTakenOver?: (items: readonly Id[]) => Promise<boolean>
  /** Nothing is packed or posted: orders alone are carried out. */
  readonly isIdle?: boolean
}
