import { systemClock } from '../actor/clock.js'
import { addressOf } from '../actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import { Generations } from '../catalog/generations.js'
import { ChainIndex } from '../catalog/index-reader.js'
import { openCatalogTables } from '../catalog/tables.js'
import { RemoteChain } from '../chain/remote-chain.js'
import { type Id, idBytes } from '../format/id.js'
import { ItemJudge } from '../ingest/item-judge.js'
import { paymentServiceLine, type ServiceLine } from '../payment/links/service-line.js'
import { GatewayLine } from '../source/upstream/gateway-line.js'
import { Height } from '../upload/intake/height.js'
import { InnerItems } from '../upload/intake/inner-items.js'
import { ItemIntake } from '../upload/intake/item-intake.js'
import { PooledSigning } from '../upload/intake/signing.js'
import { Verdicts } from '../upload/intake/verdicts.js'
import { ItemAnnouncer } from '../upload/news/item-announcer.js'
import { keptItem } from '../upload/news/kept-items.js'
import { FreeOnly } from '../upload/selling/charging.js'
import { CreditCharging } from '../upload/selling/credit-charging.js'
import { EarlierPost, lookupsMax, onlyHere } from '../upload/selling/earlier-post.js'
import { ItemSelling } from '../upload/selling/selling.js'
import { Sharing } from '../upload/selling/sharing.js'
import type { StoredUploads } from '../upload/stored/stored-uploads.js'
import { chainOptions } from './chain-options.js'
import { folders } from './folders.js'
import { uploadWalletPath } from './key-paths.js'
import { openStoredUploads } from './open-stored-uploads.js'
import type { UploadGiven } from './upload-given.js'
import { sandboxRules, uploadFolders } from './upload-options.js'
import type { UploadRecords, UploadTools } from './upload-records.js'

/** Messages under way to one thread at most. */
export const uploadMailboxMax = 4096

/** Base URLs of gateways that serve what is accepted; no gateway is named where there is none. */
export function gatewaysOf({ gateway }: Pick<UploadGiven, 'gateway'>): readonly string[] {
  return gateway === '' ? [] : [gateway]
}

/** Decides which items are accepted, and keeps what it stands on. */
export interface UploadAccepting extends Pick<ServiceLine, 'credits' | 'usdc'> {
  readonly intake: ItemIntake
  readonly announcer: ItemAnnouncer
  readonly selling: ItemSelling
  readonly signing: PooledSigning
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
  const { settings, ports, nodes } = given
  const { log, closing, modulus } = tools
  const { uploads, pools, sales, intake } = records
  const { edgeThreads } = settings.server
  const proofThreads = Math.max(1, edgeThreads >> 1)
  const chain = new RemoteChain(chainOptions(nodes, settings), systemClock)
  const height = new Height(chain, uploads, systemClock, closing.signal, log)
  const judge = new ItemJudge(proofThreads, log)
  const signing = new PooledSigning(uploadWalletPath(settings), edgeThreads, log)
  const catalog = ports.catalog && addressOf<CatalogRequest, CatalogReply>(ports.catalog, uploadMailboxMax)
  const payment = paymentLine(given)
  const { credits } = payment
  // Nobody pays for what is gone after some days.
  const usdc = sandboxRules(settings) === undefined ? payment.usdc : undefined
  const bought = usdc === undefined ? {} : { usdc }
  const selling = new ItemSelling({ sales, log: intake, clock: systemClock, logger: log, ...bought })
  const announcer = new ItemAnnouncer(catalog, closing.signal)
  const logFolder = uploadFolders(settings).log
  const stored = openStoredUploads(given, tools, records, signing, (items) => {
    inner.wake()
    for (const item of items) {
      const announced = keptItem(logFolder, item)
      if (announced !== undefined) void announcer.announce(announced)
    }
  })
  const verdicts = new Verdicts(judge, proofThreads + 1)
  const inner = innerItems(given, tools, records, { verdicts, announcer, blockedOwners })
  const gateways = gatewaysOf(given)
  const gatewayLine = networkLine(given)
  const earlier = earlierPost(given, gatewayLine)
  const chainItems = ports.catalog && openChainItems(given)
  const itemIntake = new ItemIntake({
    ...(records.receiptNews === undefined ? {} : { receiptNews: records.receiptNews }),
    ...(records.news === undefined ? {} : { news: records.news }),
    onAccepted: accepted(tools, inner),
    opened: (bundle) => inner.opened(bundle),
    uploads,
    verdicts,
    charging:
      credits === undefined
        ? new FreeOnly(pools)
        : new CreditCharging(pools, credits, uploads.environment, earlier, systemClock, closing.signal),
    ...(credits === undefined ? {} : { sharing: new Sharing(credits, earlier) }),
    ...(stored === undefined ? {} : { store: stored }),
    ...(chainItems === undefined ? {} : { isInBlock: chainItems.isInBlock }),
    announcer,
    selling,
    signing,
    terms: {
      public: modulus,
      // A gateway on another machine has the bytes from their block on, and gets the announcement before.
      dataCaches: catalog === undefined ? [] : gateways,
      fastFinalityIndexes: catalog === undefined && records.news === undefined ? [] : gateways,
    },
    height: () => height.known,
    clock: systemClock,
    closing: closing.signal,
    logger: log,
  })
  return {
    ...bought,
    ...(credits === undefined ? {} : { credits }),
    intake: itemIntake,
    announcer,
    selling,
    signing,
    stored,
    chain,
    height,
    closePayment: () => payment.close(),
    async close() {
      await inner.stopped()
      await stored?.close()
      await itemIntake.stopped()
      await Promise.all([chain.close(), judge.close(), signing.close(), gatewayLine.close()])
      await chainItems?.close()
    },
  }
}

/** Reads the index of this program's gateway. */
function openChainItems({ settings, memory }: UploadGiven): {
  isInBlock(id: Id): boolean
  close(): Promise<void>
} {
  const { environment } = openCatalogTables(folders(settings).catalog)
  const index = new ChainIndex(environment, new Generations(memory.generations))
  return {
    isInBlock: (id) => index.known(() => index.row(idBytes(id)))?.height !== undefined,
    close: () => environment.close(),
  }
}

/** Sockets to the gateways of the network. */
function networkLine({ settings }: UploadGiven): GatewayLine {
  const headMs = settings.retrieval.gatewayTimeoutMs
  return new GatewayLine({ headMs, stallMs: headMs, connectionsMax: lookupsMax }, systemClock)
}

function earlierPost({ settings, networkGateways }: UploadGiven, line: GatewayLine): typeof onlyHere {
  if (networkGateways.length === 0) return onlyHere
  return new EarlierPost(networkGateways, line, systemClock, settings.retrieval.gatewayTimeoutMs)
}

function paymentLine({ ports, paymentService }: UploadGiven): ServiceLine {
  const options = {
    mailboxMax: uploadMailboxMax,
    ...(ports.payment === undefined ? {} : { creditsPort: ports.payment }),
    ...(paymentService === undefined ? {} : { credits: paymentService }),
  }
  return paymentServiceLine(options, systemClock)
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
): NonNullable<ConstructorParameters<typeof ItemIntake>[0]['onAccepted']> {
  const count = meters.of('upload_items_accepted_total')
  const bytes = meters.of('upload_item_bytes_total')
  return (items) => {
    count.add(items.length)
    for (const { place } of items) bytes.add(place.sizeBytes)
    if (items.some(({ isBundle }) => isBundle === true)) inner.wake()
  }
}
