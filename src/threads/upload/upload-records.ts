import { systemClock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { Meters } from '../../actor/meter.js'
import { meterTable } from '../../actor/meter-table.js'
import type { PostgresFree } from '../../cluster/postgres-free.js'
import type { PostgresItems } from '../../cluster/postgres-items.js'
import type { Id } from '../../format/id.js'
import { acceptedEvent } from '../../ingest/webhook-events.js'
import { Webhooks } from '../../ingest/webhooks.js'
import { LaterBundler } from '../../upload/bundling/later-bundler.js'
import { Sales } from '../../upload/charging/sales.js'
import {
  type IntakeParts,
  type IntakeStoring,
  type OpenedIntake,
  openIntake,
} from '../../upload/intake/open-intake.js'
import { GatewayNews } from '../../upload/news/gateway-news.js'
import { ReceiptNews } from '../../upload/news/receipt-news.js'
import { FreePools } from '../../upload/records/free-pools.js'
import { PendingMarks } from '../../upload/records/pending-marks.js'
import { serviceKey } from '../../upload/records/service-key.js'
import { openUploadTables, Uploads } from '../../upload/records/uploads.js'
import { PlacesSeen } from '../../upload/stored/log-bytes.js'
import { NodeClaim } from '../../upload/stored/node-claim.js'
import { uploadWalletPath } from '../key-paths.js'
import { durabilityOf, freeRules, newsRules, uploadFolders } from '../upload-options.js'
import { openSharedFree } from './open-shared-free.js'
import { openSharedItems } from './open-shared-items.js'
import type { UploadGiven } from './upload-given.js'

/** What all parts of the upload service's thread use. */
export interface UploadTools {
  readonly log: Log
  readonly meters: Meters
  /** Ends what waits for others. */
  readonly closing: AbortController
  readonly bundler: LaterBundler
  /** The public key of the service's wallet, base64url. */
  readonly modulus: string
}

/** The tools; makes the wallet where there is none and the operator has named no file. */
export async function uploadTools({ settings, memory }: UploadGiven, log: Log): Promise<UploadTools> {
  const mayMakeKey = settings.uploads.walletFile === undefined
  const { modulus } = await serviceKey(uploadWalletPath(settings), mayMakeKey)
  const meters = new Meters(meterTable, memory.meters, memory.rows.upload)
  return { log, meters, closing: new AbortController(), bundler: new LaterBundler(), modulus }
}

/** Accepted items, and the receivers of news about them. */
export interface UploadRecords {
  readonly uploads: Uploads
  readonly pools: FreePools
  /** What other machines have given for free; undefined: there are none. */
  readonly sharedFree: PostgresFree | undefined
  /** What other machines have accepted; undefined: there are none. */
  readonly sharedItems: PostgresItems | undefined
  readonly sales: Sales
  readonly webhooks: Webhooks | undefined
  /** News for a gateway on another machine; undefined: there is none. */
  readonly news: GatewayNews | undefined
  readonly receiptNews: ReceiptNews | undefined
  readonly itemLog: OpenedIntake['itemLog']
  /** With what items are entered that were brought back from the object store. */
  readonly entering: Omit<IntakeParts, 'storing'>
  /** What the object store is compared with; undefined: there is none. */
  readonly storing: IntakeStoring | undefined
  /** Items that the index may lack, because the process ended before their announcement. */
  readonly lost: OpenedIntake['lost']
  readonly late: OpenedIntake['late']
  /** The tables have what the object store had of this machine. */
  readonly onRecovered: () => void
}

/** Opens the tables and the log of accepted items; what only the log knows is added to the tables. */
export async function openUploadRecords(given: UploadGiven, tools: UploadTools): Promise<UploadRecords> {
  const { settings, memory, ports } = given
  const { log, meters, closing, modulus } = tools
  const { tables, log: logFolder, webhooks: webhooksFolder } = uploadFolders(settings)
  const marks = ports.catalog === undefined ? undefined : new PendingMarks(memory.pendingItems)
  const uploads = new Uploads(openUploadTables(tables), marks)
  const { environment } = uploads
  const pools = new FreePools(environment, freeRules(settings))
  const sharedFree = await openSharedFree(settings, pools, log)
  const sales = new Sales(environment)
  const webhooks =
    given.webhooks && new Webhooks(webhooksFolder, given.webhooks, { meters, clock: systemClock, log })
  const elsewhere = newsRules(settings)
  const news =
    elsewhere &&
    new GatewayNews({
      environment,
      uploads,
      logFolder,
      ...elsewhere,
      publicKey: modulus,
      clock: systemClock,
      logger: log,
      closing: closing.signal,
    })
  const receiptNews =
    webhooks &&
    new ReceiptNews({
      environment,
      uploads,
      announce: (receipt, { place }) => webhooks.announce([acceptedEvent(receipt, place.sizeBytes)]),
    })
  const onLost = (ids: readonly Id[]): void => {
    receiptNews?.add(ids)
    for (const id of ids) news?.addItem(id)
  }
  const sharedItems = await openSharedItems(settings, log)
  const isListed = sharedItems !== undefined
  const entering = { uploads, sales, pools, log, clock: systemClock, onLost, isListed }
  const storing = storingOf(settings)
  const parts = storing === undefined ? entering : { ...entering, storing }
  const { itemLog, lost, late } = await openIntake(logFolder, parts)
  if (late.refusal === undefined && !mayBeStored(storing, uploads)) marks?.allBrought()
  return {
    uploads,
    pools,
    sharedFree,
    sharedItems,
    sales,
    webhooks,
    news,
    receiptNews,
    entering,
    storing,
    itemLog,
    lost,
    late,
    onRecovered: () => marks?.allBrought(),
  }
}

/** Whether the store may have more than the tables: of a disk that is new, or was lost. */
function mayBeStored(storing: IntakeStoring | undefined, uploads: Uploads): boolean {
  return storing !== undefined && NodeClaim.nameIn(uploads) === undefined
}

/** What the object store is compared with; undefined: there is none. */
function storingOf(settings: UploadGiven['settings']): IntakeStoring | undefined {
  if (settings.contentStore.kind === 'none') return undefined
  return { seen: new PlacesSeen(), unstored: [], isUnflushed: !durabilityOf(settings).isOnDisk }
}
