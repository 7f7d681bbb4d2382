import type { MessagePort } from 'node:worker_threads'
import { systemClock } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { type Address, addressOf, answer } from '../../actor/mailbox-address.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { Cashier } from '../../admission/cashier.js'
import {
  type CashierReply,
  type CashierRequest,
  cashierDefaults,
  Kinds,
} from '../../admission/cashier-messages.js'
import { cdpAuthorizing } from '../../admission/cdp-token.js'
import { ChainWitness } from '../../admission/chain-witness.js'
import { excluding } from '../../admission/excluding.js'
import { Facilitator } from '../../admission/facilitator.js'
import { openBuckets } from '../../admission/open-buckets.js'
import { bucketPurposeOf, RecordedOwners } from '../../admission/payment-owners.js'
import { PaymentRecords } from '../../admission/payment-records.js'
import type { KeptName } from '../../admission/settlement-claims.js'
import { usdcOf } from '../../admission/usdc.js'
import { ExcludedSenders } from '../../payment/books/excluded-senders.js'
import {
  type CreditsReply,
  type CreditsRequest,
  RemoteUsdc,
  usdcByMessages,
} from '../../payment/links/credits-messages.js'
import { tryWrite } from '../../store/disk-error.js'
import { bucketRules, clientsOf } from '../client-options.js'
import type { EdgeGiven } from '../edge-given.js'
import type { SettingsNews } from '../thread-news.js'
import type { SettingsOf } from '../thread-settings.js'
import { type CdpKey, offerOptions, paymentsFolder, rpcOf } from './cashier-options.js'

/**
 * What the thread that settles payments is started with; it answers `CashierRequest` with `CashierReply` on every port.
 * Plain: cloned, and the ports move.
 */
export interface CashierGiven {
  readonly settings: SettingsOf<'cashier'>
  /** Where paid tokens go. */
  readonly limits: NonNullable<EdgeGiven['limits']>
  /** Memory of the `Kinds` table. */
  readonly kinds: SharedArrayBuffer
  readonly ports: {
    /** To the keeper of buckets. */
    readonly admission: MessagePort
    /** To a payment service in this program; absent: there is none. */
    readonly payment?: MessagePort
  }
  /**
   * The payment service elsewhere, where it is not in this program: it may have the same wallet, and decides which payments are
   * the gateway's.
   */
  readonly paymentService?: { readonly url: string; readonly secret: string }
  /** Signs requests to the facilitator, where it is the provider's own. */
  readonly cdp?: CdpKey
}

/** Messages under way to one thread at most. */
const mailboxMax = 1024

/** Settles payments with the facilitator and adds what they bought to buckets. */
export async function openCashier(given: CashierGiven): Promise<OpenThread> {
  const { settings, limits, ports, cdp } = given
  const log = createLog(settings.server.logLevel, 'cashier')
  const offer = offerOptions(settings)
  if (offer === undefined) throw new Error('nothing is sold by these settings')
  const { settleTimeoutMs: verifyMs } = settings.x402
  // A facilitator may answer only when the block is mined; the request is not kept waiting that long.
  const settleMs = Math.max(30_000, verifyMs)
  const { network, wallet } = offer
  const usdc = usdcOf[network]
  const { buckets, clients, close } = await openBuckets(
    { ...limits, clients: clientsOf(settings) },
    { port: ports.admission, mailboxMax },
    systemClock,
    log,
  )
  // More than all payments of contracts' wallets together can take: made-up ones leave connections to plain keys.
  const connectionsMax = 2 * cashierDefaults.contractsMax
  const facilitator = new Facilitator(
    { url: offer.facilitatorUrl, usdc, verifyMs, settleMs, connectionsMax },
    systemClock,
    log,
    cdp === undefined ? undefined : cdpAuthorizing(cdp.keyId, cdp.secret, systemClock),
  )
  const { rpc } = rpcOf(settings, network)
  const witness = rpc && new ChainWitness({ ...rpc, usdc, wallet, limitMs: verifyMs }, systemClock)
  const records = new PaymentRecords(paymentsFolder(settings))
  const claims = buckets.claims?.({ self: records.name(), leftMs: 2 * settleMs, kept: keptIn(records) })
  const service = paymentServiceOf(given, verifyMs)
  const commonName = async (): Promise<string> => (await claims?.commonName()) ?? records.name()
  const desk = service && usdcByMessages(service.ask)
  const owners = desk && new RecordedOwners((order) => desk.own(order), commonName, bucketPurposeOf)
  const excluded = new ExcludedSenders(settings.exclusions.excludedSenders)
  const cashier = new Cashier({
    records,
    facilitator: excluding(facilitator, (payer) => excluded.has(payer)),
    credits: buckets,
    bindsBeneficiary: true,
    ...(claims === undefined ? {} : { claims }),
    ...(witness === undefined ? {} : { witness }),
    ...(owners === undefined ? {} : { owners }),
    kinds: new Kinds(given.kinds),
    clock: systemClock,
    log,
    options: { ...cashierDefaults, waitMs: verifyMs },
  })
  cashier.start()
  return {
    connect: (port) => answer<CashierRequest, CashierReply>(port, (message) => cashier.handle(message)),
    onMessage: (news) => use({ clients, buckets, excluded }, news as SettingsNews<'cashier'>),
    async close() {
      await cashier.close()
      await facilitator.close()
      await witness?.close()
      await service?.close()
      await close()
    },
  }
}

/** The common name of gateways, on this disk. */
function keptIn(records: PaymentRecords): KeptName {
  return {
    find: () => records.commonName(),
    keep: (name) => void tryWrite(() => records.keepCommonName(name)),
  }
}

/** Takes up settings that were read again. */
function use(
  {
    clients,
    buckets,
    excluded,
  }: Pick<Awaited<ReturnType<typeof openBuckets>>, 'clients' | 'buckets'> & { excluded: ExcludedSenders },
  { settings }: SettingsNews<'cashier'>,
): void {
  excluded.use(settings.exclusions.excludedSenders)
  clients.use(clientsOf(settings))
  buckets.use(bucketRules(settings))
}

/** Who decides whose a payment is: the payment service, here or elsewhere; undefined: there is none. */
function paymentServiceOf({ paymentService, ports }: CashierGiven, limitMs: number) {
  if (paymentService !== undefined) {
    const remote = new RemoteUsdc({ ...paymentService, limitMs, connectionsMax: 16 }, systemClock)
    const ask: Parameters<typeof usdcByMessages>[0] = (request) => remote.ask(request)
    return { ask, close: () => remote.close() }
  }
  if (ports.payment === undefined) return undefined
  const thread: Address<CreditsRequest, CreditsReply> = addressOf(ports.payment, mailboxMax)
  const ask: Parameters<typeof usdcByMessages>[0] = (request) => thread.ask(request)
  return { ask, close: async () => undefined }
}
