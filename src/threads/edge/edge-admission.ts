import { systemClock } from '../../actor/clock.js'
import { addressOf } from '../../actor/mailbox-address.js'
import { AddressThrottle } from '../../admission/address-throttle.js'
import type { CashierReply, CashierRequest } from '../../admission/cashier-messages.js'
import { Clients } from '../../admission/clients.js'
import { Gate } from '../../admission/gate.js'
import { openBuckets } from '../../admission/open-buckets.js'
import type { Selling } from '../../admission/open-selling.js'
import { LocalOnly } from '../../gateway/local-only.js'
import type { Request } from '../../http/exchange.js'
import type { Beside, InfoParts } from '../../routes/about-gateway.js'
import { allowanceOf, limitsInfo, rateLimitRoutes } from '../../routes/rate-limit-routes.js'
import type { ClientOf } from '../../serving/in-slot.js'
import type { Route } from '../../serving/route.js'
import { bucketRules, clientsOf } from '../client-options.js'
import type { EdgeGiven } from '../edge-given.js'
import { edgePayments } from '../payment/cashier-options.js'
import type { SettingsNews } from '../thread-news.js'
import type { EdgeTools } from './edge-tools.js'
import { localOnlyRules } from './gateway-options.js'

/** Who a client is, and whether its answer may be sent. */
export interface EdgeAdmission {
  /** Undefined: nobody is limited. */
  readonly gate: Gate | undefined
  /** Address of the client whose share of limited slots a request uses. */
  readonly clientOf: ClientOf
  /** The same, with all bits of an IPv6 address. */
  readonly exactOf: ClientOf
  /** Requests that are forwarded to no other gateway. */
  readonly localOnly: LocalOnly
  /** Undefined: nothing is sold. */
  readonly selling: Selling | undefined
  /** Sections of the info answer, as they are now. */
  readonly sections: NonNullable<InfoParts['sections']>
  /** The same for people. */
  readonly stated: Pick<Beside, 'allowance' | 'price'>
  /** From now on clients are distinguished, limited and exempt by these settings. */
  use(settings: SettingsNews<'edge'>['settings']): void
  /** Routes about limits and payments; `isAdmin`: a request of the operator. */
  routes(isAdmin: (request: Request) => boolean): readonly Route[]
  close(): Promise<void>
}

/** Opens the buckets and the payments, as far as the operator has turned them on. */
export async function openEdgeAdmission(given: EdgeGiven, tools: EdgeTools): Promise<EdgeAdmission> {
  const { settings } = given
  const { log, meters, limited, vocabulary } = tools
  const about = clientsOf(settings)
  const limits = await openLimits(given, tools)
  const selling = limits && (await openSales(given, tools, limits.clients))
  const taking = selling === undefined ? {} : { payments: selling.payments }
  const gate =
    limits &&
    new Gate({
      ...limits,
      ...taking,
      exemptNames: settings.limits.exemptNames,
      meters,
      throttle: new AddressThrottle(systemClock),
      onLimited: (address) => limited.note(systemClock.now(), address, 0),
    })
  const clients = limits?.clients ?? new Clients({ ...about, exempt: [] }, noSecret)
  const local = new LocalOnly(localOnlyRules(settings))
  return {
    gate,
    clientOf: (request) => clients.of(request).address,
    exactOf: (request) => clients.of(request).exact,
    localOnly: local,
    selling,
    get sections() {
      return sectionsOf(limits, selling)
    },
    get stated() {
      return statedOf(limits, selling)
    },
    use: (now) => {
      clients.use(clientsOf(now))
      local.use(localOnlyRules(now))
      limits?.buckets.use(bucketRules(now))
      gate?.use(now.limits)
    },
    routes: (isAdmin) => [
      ...(limits === undefined
        ? []
        : rateLimitRoutes({
            ...limits,
            ...taking,
            clock: systemClock,
            log,
            pathPrefix: vocabulary.pathPrefix,
            isAdmin,
          })),
      ...(selling?.routes ?? []),
    ],
    async close() {
      await limits?.close()
      await selling?.close()
    },
  }
}

function sectionsOf(limits: OpenLimits | undefined, selling: Selling | undefined): EdgeAdmission['sections'] {
  return {
    ...(limits === undefined ? {} : { rateLimiter: limitsInfo(limits.buckets) }),
    ...(selling === undefined ? {} : { x402: selling.about }),
  }
}

function statedOf(limits: OpenLimits | undefined, selling: Selling | undefined): EdgeAdmission['stated'] {
  return {
    ...(limits === undefined ? {} : { allowance: allowanceOf(limits.buckets) }),
    ...(selling === undefined ? {} : { price: selling.price }),
  }
}

/** The secret of clients whose keys name no bucket: any will do. */
const noSecret = { low: 0, high: 0 }

type OpenLimits = Awaited<ReturnType<typeof openBuckets>>

async function openLimits(
  { settings, limits, ports }: EdgeGiven,
  { log, mailboxMax }: EdgeTools,
): Promise<OpenLimits | undefined> {
  if (limits === undefined || ports.admission === undefined) return undefined
  const line = { port: ports.admission, mailboxMax }
  return openBuckets({ ...limits, clients: clientsOf(settings) }, line, systemClock, log)
}

/** Loaded where something is sold. */
async function openSales(
  { settings, sales, ports }: EdgeGiven,
  { meters, mailboxMax, vocabulary }: EdgeTools,
  clients: Clients,
): Promise<Selling | undefined> {
  if (sales === undefined || ports.cashier === undefined) return undefined
  const { openPayments } = await import('../../admission/open-selling.js')
  return openPayments(edgePayments(settings, sales), {
    cashier: addressOf<CashierRequest, CashierReply>(ports.cashier, mailboxMax),
    pathPrefix: vocabulary.pathPrefix,
    clientOf: (request) => clients.of(request).exact,
    clock: systemClock,
    meters,
  })
}
