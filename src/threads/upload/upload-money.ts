import { systemClock } from '../../actor/clock.js'
import { paymentServiceLine, type ServiceLine } from '../../payment/links/service-line.js'
import { UpstreamClient } from '../../source/upstream/upstream-client.js'
import { type Charging, FreeOnly } from '../../upload/charging/charging.js'
import { CreditCharging } from '../../upload/charging/credit-charging.js'
import { KnownPosters } from '../../upload/charging/known-posters.js'
import {
  lookupsMax,
  NetworkPosts,
  neverPosted,
  type PostHistory,
} from '../../upload/charging/network-posts.js'
import { RepostCheck } from '../../upload/charging/repost-check.js'
import { ServicePosts } from '../../upload/charging/service-posts.js'
import type { ServiceOfSeveral } from '../../upload/charging/several-services.js'
import { Sharing } from '../../upload/charging/sharing.js'
import type { BundleScan } from '../../upload/intake/bundle-scan.js'
import { nodeName } from '../open-objects.js'
import { sandboxRules, uploadMailboxMax } from '../upload-options.js'
import type { UploadGiven } from './upload-given.js'
import type { UploadRecords, UploadTools } from './upload-records.js'

/** Who pays for items, and what decides it. */
export interface UploadMoney extends Pick<ServiceLine, 'credits' | 'usdc'> {
  readonly charging: Charging
  readonly sharing?: Sharing
  readonly service: ServiceOfSeveral | undefined
  /** Asks the payment service nothing more. */
  closePayment(): Promise<void>
  close(): Promise<void>
}

/**
 * This upload service, where others may have the same payment service or ledger. Several machines may have the same host name,
 * and what one of them has sold must not count as sold by the other. So without `CLUSTER_NODE` the UUID of the disk is part of
 * the name.
 */
function serviceOf(
  { settings, paymentService, isLedgerShared }: UploadGiven,
  { pools, sharedItems }: Pick<UploadRecords, 'pools' | 'sharedItems'>,
): ServiceOfSeveral | undefined {
  const isCluster = settings.cluster.databaseUrl !== undefined
  if (!isCluster && !isLedgerShared && paymentService === undefined) return undefined
  const isNamed = isCluster || settings.contentStore.nodeName !== undefined
  const name = isNamed ? nodeName(settings) : `${nodeName(settings)}.${pools.store()}`
  return { name, isListing: sharedItems !== undefined }
}

/** Opens the line to the payment service, where there is one, and what charges items by it. */
export function openUploadMoney(
  given: UploadGiven,
  { closing, log }: UploadTools,
  { uploads, pools, sharedItems }: UploadRecords,
  scan: BundleScan,
): UploadMoney {
  const { credits, usdc, ...payment } = paymentLine(given)
  const client = networkClient(given)
  const history = new ServicePosts(scan, sharedItems, networkPosts(given, client, log))
  const closePayment = (): Promise<void> => payment.close()
  const close = (): Promise<void> => client.close()
  // Nobody pays for what is gone after some days.
  const bought = usdc === undefined || sandboxRules(given.settings) !== undefined ? {} : { usdc }
  const posters = new KnownPosters(uploads.environment)
  const reposts = new RepostCheck(history, posters, systemClock, scan)
  const service = serviceOf(given, { pools, sharedItems })
  const shared = { ...bought, service, closePayment, close }
  if (credits === undefined) return { ...shared, charging: new FreeOnly(pools, reposts) }
  const { signal } = closing
  const charging = new CreditCharging(
    pools,
    credits,
    uploads.environment,
    reposts,
    systemClock,
    signal,
    service,
  )
  const sharing = new Sharing(credits, history, posters, systemClock)
  return { ...shared, credits, charging, sharing }
}

/** Sockets to the gateways of the network. */
function networkClient({ settings }: UploadGiven): UpstreamClient {
  const headMs = settings.retrieval.gatewayTimeoutMs
  return new UpstreamClient({ headMs, stallMs: headMs, connectionsMax: lookupsMax }, systemClock)
}

function networkPosts(
  { settings, networkGateways }: UploadGiven,
  client: UpstreamClient,
  log: UploadTools['log'],
): PostHistory {
  if (networkGateways.length === 0) return neverPosted
  return new NetworkPosts(networkGateways, client, systemClock, settings.retrieval.gatewayTimeoutMs, log)
}

function paymentLine({ ports, paymentService }: UploadGiven): ServiceLine {
  const options = {
    mailboxMax: uploadMailboxMax,
    ...(ports.payment === undefined ? {} : { creditsPort: ports.payment }),
    ...(paymentService === undefined ? {} : { credits: paymentService }),
  }
  return paymentServiceLine(options, systemClock)
}
