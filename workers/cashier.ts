import { runThread } from '../src/actor/run-thread.js'
import { openCashier } from '../src/threads/payment/open-cashier.js'

/** The thread of the cashier: settles payments with the facilitator and adds what they bought to buckets. */
await runThread(openCashier)
