import { runThread } from '../src/actor/run-thread.js'
import { openPayment } from '../src/threads/payment/open-payment.js'

/** The thread of the payment service: the one writer of the ledger, and the sockets of its port. */
await runThread(openPayment)
