import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { addressOf, answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { cdpAuthorizing } from '../src/admission/cdp-token.js'
import { ChainWitness } from '../src/admission/chain-witness.js'
import { Facilitator } from '../src/admission/facilitator.js'
import { AskedOwners } from '../src/admission/payment-owners.js'
import type { PaymentsThread } from '../src/admission/payments-wiring.js'
import { Cashier } from '../src/admission/settlement.js'
import { PaymentLedger } from '../src/admission/settlement-ledger.js'
import { type CashierReply, type CashierRequest, Kinds } from '../src/admission/settlement-protocol.js'
import { usdcOf } from '../src/admission/usdc.js'
import { openBuckets } from '../src/admission/wiring.js'
import { type CreditsReply, type CreditsRequest, RemoteUsdc, usdcBy } from '../src/payment/protocol.js'

/** The thread of the cashier: settles payments with the facilitator and adds what they bought to buckets. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const { admissionPort, creditsPort, ...options } = workerData as PaymentsThread & {
  admissionPort: MessagePort
  creditsPort?: MessagePort
}
const log = createLog(options.logLevel, 'payments')
const { mailboxMax, network, facilitatorUrl: url, verifyMs, settleMs, connectionsMax, cdp } = options
const line = { port: admissionPort, mailboxMax }
const { buckets, close } = await openBuckets(options.limits, line, systemClock, log)
const facilitator = new Facilitator(
  { url, usdc: usdcOf[network], verifyMs, settleMs, connectionsMax },
  systemClock,
  log,
  cdp === undefined ? undefined : cdpAuthorizing(cdp.keyId, cdp.secret, systemClock),
)
const { rpcUrl, wallet } = options
const witness =
  rpcUrl === undefined
    ? undefined
    : new ChainWitness({ url: rpcUrl, usdc: usdcOf[network], wallet, limitMs: verifyMs }, systemClock)
const ledger = new PaymentLedger(options.ledgerPath)
const claims = buckets.claims?.({ self: ledger.name(), leftMs: 2 * settleMs })
const { paymentService } = options
const remote =
  paymentService && new RemoteUsdc({ ...paymentService, limitMs: verifyMs, connectionsMax: 16 }, systemClock)
const embedded = creditsPort && addressOf<CreditsRequest, CreditsReply>(creditsPort, mailboxMax)
const desk = remote
  ? usdcBy((request) => remote.ask(request))
  : embedded && usdcBy((request) => embedded.ask(request))
const owners =
  desk &&
  new AskedOwners(
    (asked) => desk.own(asked),
    async () => (await claims?.house()) ?? ledger.name(),
  )
const cashier = new Cashier({
  ledger,
  facilitator,
  credits: buckets,
  ...(claims === undefined ? {} : { claims }),
  ...(witness === undefined ? {} : { witness }),
  ...(owners === undefined ? {} : { owners }),
  kinds: new Kinds(options.kinds),
  clock: systemClock,
  log,
  options: options.cashier,
})
cashier.start()

async function stop(): Promise<void> {
  await cashier.close()
  await facilitator.close()
  await witness?.close()
  await remote?.close()
  await close()
  process.exit(0)
}

parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) void stop()
  else answer<CashierRequest, CashierReply>(order.connect, (message) => cashier.handle(message))
})
keepHeartbeat()
parent.postMessage({ ready: true })
