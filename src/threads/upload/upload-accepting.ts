import { systemClock } from '../../actor/clock.js'
import { addressOf } from '../../actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { Generations } from '../../catalog/generations.js'
import { ChainIndex } from '../../catalog/index-reader.js'
import { openCatalogTables } from '../../catalog/tables.js'
import { RemoteChain } from '../../chain/remote-chain.js'
import { type Id, idBytes } from '../../format/id.js'
import { ItemJudge } from '../../ingest/item-judge.js'
import type { ServiceLine } from '../../payment/links/service-line.js'
import type { Charging } from '../../upload/charging/charging.js'
import { OpenSales } from '../../upload/charging/open-sales.js'
import type { ServiceOfSeveral } from '../../upload/charging/several-services.js'
import { BundleScan } from '../../upload/intake/bundle-scan.js'
import { FreeTurns } from '../../upload/intake/free-turns.js'
import { Height } from '../../upload/intake/height.js'
import { InnerItems } from '../../upload/intake/inner-items.js'
import { ItemIntake, type ItemIntakeParts } from '../../upload/intake/item-intake.js'
import type { KnownItemsParts } from '../../upload/intake/known-items.js'
import { SharedItems } from '../../upload/intake/shared-items.js'
import type { SignedReceiptsParts } from '../../upload/intake/signed-receipts.js'
import { PooledSigning } from '../../upload/intake/signing.js'
import { Verdicts } from '../../upload/intake/verdicts.js'
import { ItemAnnouncer } from '../../upload/news/item-announcer.js'
import { announceLogged } from '../../upload/news/read-announcement.js'
import type { AcceptedItem } from '../../upload/records/uploads.js'
import type { StoredUploads } from '../../upload/stored/stored-uploads.js'
import { chainOptions } from '../chain-options.js'
import { folders } from '../folders.js'
import { uploadWalletPath } from '../key-paths.js'
import { sandboxRules, uploadFolders, uploadMailboxMax } from '../upload-options.js'
import { openStoredUploads } from './open-stored-uploads.js'
import type { UploadGiven } from './upload-given.js'
import { openUploadMoney, type UploadMoney } from './upload-money.js'
import type { UploadRecords, UploadTools } from './upload-records.js'

/** Base URLs of gateways that serve what is accepted; no gateway is named where there is none. */
export function gatewaysOf({ gateway }: Pick<UploadGiven, 'gateway'>): readonly string[] {
  return gateway === '' ? [] : [gateway]
}

/** Decides which items are accepted, and keeps what it stands on. */
export interface UploadAccepting extends Pick<ServiceLine, 'credits' | 'usdc'> {
  readonly intake: ItemIntake
  readonly announcer: ItemAnnouncer
  readonly openSales: OpenSales
  readonly signing: PooledSigning
  /** Absent: no other upload service has the same payment service. */
  readonly service?: ServiceOfSeveral
  /** The object store of accepted items; undefined: none. */
  readonly stored: StoredUploads | undefined
  readonly chain: RemoteChain
  readonly height: Height
  /** Asks the payment service nothing more. */
  closePayment(): Promise<void>
  close(): Promise<void>
}

/**
 * What decides about items: signature, money, disk, catalog, receipt; and the lines to those who decide it.
 * `blockedOwners` may change at any time.
 */
export function openUploadAccepting(
  given: UploadGiven,
  tools: UploadTools,
  records: UploadRecords,
  blockedOwners: ReadonlySet<string>,
): UploadAccepting {
  const { log, closing, modulus } = tools
  const { uploads, sales, itemLog } = records
  const lines = openLines(given, tools, records)
  const { chain, height, signing, announcer, verdicts } = lines
  const inBlock = openChainItems(given)
  const watching = { clock: systemClock, logger: log, closing: closing.signal }
  const known = openKnown(tools, records, inBlock, blockedOwners)
  const money = openUploadMoney(given, tools, records, known.scan)
  const { charging, sharing } = money
  const openSales = new OpenSales({ sales, itemLog, ...watching, ...sellerOf(money) })
  const onBrought = (items: readonly AcceptedItem[]): void =>
    taken(given, items, { inner, charging, announcer, scan: known.scan })
  const stored = openStoredUploads(given, tools, records, signing, {
    onBrought,
    onRecovered: () => recovered(records, charging),
    leaveSales: (isLost) => intake.leaveSales(isLost),
  })
  const inner = innerItems(given, tools, records, { verdicts, announcer, blockedOwners })
  const intake = new ItemIntake({
    ...newsOf(given, records, modulus),
    onAccepted: accepted(tools, inner, known.scan),
    ...known,
    opened: (bundle) => inner.opened(bundle),
    uploads,
    verdicts,
    charging,
    ...(sharing === undefined ? {} : { sharing }),
    ...(stored === undefined ? {} : { objectStore: stored }),
    ...inBlock,
    announcer,
    openSales,
    ...lines.receipts,
    height: () => height.known,
    ...watching,
  })
  void begun(tools, records, { known, stored, charging, onBrought })
  return {
    ...sellerOf(money),
    intake,
    announcer,
    openSales,
    signing,
    stored,
    chain,
    height,
    closePayment: () => money.closePayment(),
    async close() {
      await Promise.all([inner.stopped(), known.stopped()])
      await stored?.close()
      await intake.stopped()
      await Promise.all([lines.close(), money.close(), inBlock.close()])
    },
  }
}

/** Starts what decides by the tables: when they have all that the log has. */
async function begun(
  { closing: { signal }, log }: UploadTools,
  records: UploadRecords,
  parts: {
    readonly known: Pick<ReturnType<typeof openKnown>, 'start'>
    readonly stored: StoredUploads | undefined
    readonly charging: Charging
    readonly onBrought: (items: readonly AcceptedItem[]) => void
  },
): Promise<void> {
  const items = await records.late.entered(signal, log)
  if (items === undefined || signal.aborted) return
  parts.known.start()
  if (items.length > 0) parts.onBrought(items)
  if (parts.stored === undefined) recovered(records, parts.charging)
  else parts.stored.start()
}

/** Items were brought back, or taken over: this machine has accepted them now. */
function taken(
  { settings }: UploadGiven,
  items: readonly AcceptedItem[],
  { inner, scan, charging, announcer }: Deciders,
): void {
  inner.wake()
  scan.wake()
  for (const item of items) charging.settle(item.id, item)
  announceLogged(items, uploadFolders(settings).log, announcer)
}

/** All that was accepted before the start is here. */
function recovered({ onRecovered }: UploadRecords, charging: Charging): void {
  onRecovered()
  charging.refundAbandoned()
}

interface Deciders {
  readonly inner: InnerItems
  readonly scan: BundleScan
  readonly charging: Charging
  readonly announcer: ItemAnnouncer
}

/** What was accepted, here and by other machines, alone or in bundles. */
function openKnown(
  { closing, log: logger }: UploadTools,
  { uploads, sales, itemLog, sharedItems, late }: UploadRecords,
  inBlock: Pick<KnownItemsParts, 'isInBlock'>,
  blockedOwners: ReadonlySet<string>,
) {
  const watching = { clock: systemClock, logger, closing: closing.signal }
  const scan = new BundleScan({ uploads, sales, itemLog, blockedOwners, ...inBlock, ...watching })
  const listing = sharedItems && new SharedItems({ uploads, sales, scan, items: sharedItems, ...watching })
  return {
    scan,
    late,
    ...(listing === undefined ? {} : { listing }),
    start(): void {
      scan.start()
      listing?.start()
    },
    async stopped(): Promise<void> {
      await Promise.all([scan.stopped(), listing?.stopped()])
    },
  }
}

/** What receipts say, and who hears of accepted items. */
function newsOf(
  given: UploadGiven,
  records: UploadRecords,
  modulus: string,
): Pick<ItemIntakeParts, 'receiptNews' | 'news' | 'terms'> {
  const { receiptNews, news } = records
  return {
    ...(receiptNews === undefined ? {} : { receiptNews }),
    ...(news === undefined ? {} : { news }),
    terms: { public: modulus, ...servedBy(given, records) },
  }
}

/** To the chain, the catalog and the threads that check and sign. */
function openLines(
  { settings, ports, nodes }: UploadGiven,
  { log, closing }: UploadTools,
  { uploads, pools }: UploadRecords,
) {
  const { edgeThreads, requestsMax } = settings.server
  const proofThreads = Math.max(1, edgeThreads >> 1)
  const chain = new RemoteChain(chainOptions(nodes, settings), systemClock)
  const judge = new ItemJudge(proofThreads, log)
  const signing = new PooledSigning(uploadWalletPath(settings), edgeThreads, log)
  const catalog = ports.catalog && addressOf<CatalogRequest, CatalogReply>(ports.catalog, uploadMailboxMax)
  return {
    chain,
    height: new Height(chain, uploads, systemClock, closing.signal, log),
    signing,
    receipts: {
      signing,
      freeTurns: new FreeTurns(pools, { threads: edgeThreads, requestsMax }, systemClock),
    } satisfies Partial<SignedReceiptsParts>,
    announcer: new ItemAnnouncer(catalog, closing.signal),
    verdicts: new Verdicts(judge, proofThreads + 1),
    async close(): Promise<void> {
      await Promise.all([chain.close(), judge.close(), signing.close()])
    },
  }
}

/** Who serves what is accepted. A gateway on another machine has the bytes from their block on, and the announcement before. */
function servedBy(
  given: UploadGiven,
  { news }: UploadRecords,
): { readonly dataCaches: readonly string[]; readonly fastFinalityIndexes: readonly string[] } {
  const gateways = gatewaysOf(given)
  const hasCatalog = given.ports.catalog !== undefined
  return {
    dataCaches: hasCatalog ? gateways : [],
    fastFinalityIndexes: hasCatalog || news !== undefined ? gateways : [],
  }
}

/** How items are sold one by one, and by which of several services. */
function sellerOf({
  credits,
  usdc,
  service,
}: Pick<UploadMoney, 'credits' | 'usdc' | 'service'>): Pick<UploadAccepting, 'credits' | 'usdc' | 'service'> {
  return {
    ...(credits === undefined ? {} : { credits }),
    ...(usdc === undefined ? {} : { usdc }),
    ...(service === undefined ? {} : { service }),
  }
}

/** Reads the index of this program's gateway, where it has one. */
function openChainItems({ ports, settings, memory }: UploadGiven): {
  readonly isInBlock?: (id: Id) => boolean
  close(): Promise<void>
} {
  if (ports.catalog === undefined) return { close: async () => undefined }
  const { environment } = openCatalogTables(folders(settings).catalog)
  const index = new ChainIndex(environment, new Generations(memory.generations))
  return {
    isInBlock: (id) => index.known(() => index.row(idBytes(id), false))?.height !== undefined,
    close: () => environment.close(),
  }
}

/** Opens accepted bundles. */
function innerItems(
  { settings }: UploadGiven,
  { log, closing }: UploadTools,
  { uploads }: UploadRecords,
  lines: Pick<ConstructorParameters<typeof InnerItems>[0], 'verdicts' | 'announcer' | 'blockedOwners'>,
): InnerItems {
  return new InnerItems({
    uploads,
    ...lines,
    logFolder: uploadFolders(settings).log,
    logger: log,
    closing: closing.signal,
    isSandbox: sandboxRules(settings) !== undefined,
    clock: systemClock,
  })
}

/** Counts accepted items, and has accepted bundles opened. */
function accepted(
  { meters }: UploadTools,
  inner: InnerItems,
  scan: BundleScan,
): NonNullable<ConstructorParameters<typeof ItemIntake>[0]['onAccepted']> {
  const count = meters.of('upload_items_accepted_total')
  const bytes = meters.of('upload_item_bytes_total')
  return (items) => {
    count.add(items.length)
    for (const { place } of items) bytes.add(place.sizeBytes)
    if (!items.some(({ isBundle }) => isBundle === true)) return
    inner.wake()
    scan.wake()
  }
}
