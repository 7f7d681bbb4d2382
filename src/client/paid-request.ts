import { ClientError } from './errors.js'
import type { ResumeStore } from './resume-store.js'
import { errorOf, type RemoteService, type ServiceAnswer, type ServiceRequest } from './service.js'
import type { ClientSigner } from './signer.js'
import { nowMs } from './timing.js'
import {
  checkClock,
  offersOf,
  type SignedPayment,
  settlementOf,
  signPayment,
  timeOf,
} from './usdc-payment.js'

export interface Payer {
  readonly signer: ClientSigner
  readonly maxMUSDCAmount: bigint
  readonly store: ResumeStore
}

/**
 * Asks, pays the offer of a 402 and asks again. The signed payment is remembered under `key` before it is sent, and a repetition,
 * also one by a later process, sends the same payment: it can be settled once only. It is forgotten when it was
 * accepted, by the caller once the answer is safe, and when it is not valid any more.
 */
export async function askPaid(
  service: RemoteService,
  request: ServiceRequest,
  key: string,
  payer: Payer,
): Promise<ServiceAnswer> {
  const wish = { ...request, accepted: [...(request.accepted ?? [200, 202]), 402] }
  const found = await inTurn(payer.store, key, () => paymentOrAnswer(service, wish, key, payer))
  if ('answer' in found) return found.answer
  const answer = await sendPaid(service, wish, found.payment)
  paidWith.set(answer, found.payment.value)
  return answer
}

/** The payments with which answers were had. */
const paidWith = new WeakMap<ServiceAnswer, string>()

/** Forgets the payment of an answer that is safe. A newer one under the key, of a call that is still under way, stays. */
export async function forgetPayment(store: ResumeStore, key: string, answer: ServiceAnswer): Promise<void> {
  await inTurn(store, key, async () => {
    const kept = await rememberedPayment(store, key)
    if (kept !== undefined && kept.value === paidWith.get(answer)) await store.delete(key)
  })
}

/** What waits in a store until the payment under its key is remembered: two that sign at once would pay twice. */
const turns = new WeakMap<ResumeStore, Map<string, Promise<unknown>>>()

/** Runs `act` after all others of this store and key. The last one leaves nothing behind. */
async function inTurn<T>(store: ResumeStore, key: string, act: () => Promise<T>): Promise<T> {
  const ofStore = turns.get(store) ?? new Map<string, Promise<unknown>>()
  turns.set(store, ofStore)
  const before = ofStore.get(key) ?? Promise.resolve()
  const mine = before.then(act, act)
  ofStore.set(key, mine)
  try {
    return await mine
  } finally {
    if (ofStore.get(key) === mine) ofStore.delete(key)
  }
}

/** The remembered payment, else a new one for the service's offer; or the answer, where nothing is to be paid. */
async function paymentOrAnswer(
  service: RemoteService,
  request: ServiceRequest,
  key: string,
  payer: Payer,
): Promise<{ readonly payment: SignedPayment } | { readonly answer: ServiceAnswer }> {
  const known = await rememberedPayment(payer.store, key)
  if (known !== undefined && known.validUntilMs > nowMs()) return { payment: known }
  const answer = await service.ask(request)
  if (answer.status !== 402) return { answer }
  // Only where the service's clock agrees that it is over: this one may have jumped, and two payments would be good then.
  if (known !== undefined && known.validUntilMs > (timeOf(answer) ?? nowMs())) return { payment: known }
  const offers = offersOf(answer)
  if (offers.length > 0) checkClock(answer)
  const payment = await signPayment(offers, payer.signer, payer.maxMUSDCAmount)
  await payer.store.set(key, JSON.stringify(payment))
  return { payment }
}

async function sendPaid(
  service: RemoteService,
  request: ServiceRequest,
  payment: SignedPayment,
): Promise<ServiceAnswer> {
  const headers = { ...request.headers, [payment.header]: payment.value }
  let answer: ServiceAnswer
  try {
    answer = await service.ask({ ...request, headers })
  } catch (error) {
    if (!(error instanceof ClientError) || !['unavailable', 'aborted', 'rate-limited'].includes(error.code))
      throw error
    const found = `a payment of ${payment.amount} micro-USDC was sent, and no answer came`
    const untilText = new Date(payment.validUntilMs).toISOString()
    const advice =
      `call again with the same content before ${untilText}: the same payment is sent, which can be settled once only. ` +
      'Afterwards a new one is signed: look first whether your wallet has paid this one'
    throw new ClientError('payment-uncertain', found, advice, { cause: error })
  }
  if (answer.status !== 402) return answer
  // A settled payment that is refused nevertheless is not paid again: only people can sort that out. One that has failed by the
  // answer can be settled while it is valid: it stays remembered until then, so that no second one is signed beside it.
  const settled = settlementOf(answer)
  if (settled?.success === true) {
    const found = `the service settled ${payment.amount} micro-USDC (${settled.transaction}) and still refuses`
    throw new ClientError(
      'payment-uncertain',
      found,
      'ask the operator of the service, with that transaction',
    )
  }
  throw errorOf(service.url, answer)
}

async function rememberedPayment(store: ResumeStore, key: string): Promise<SignedPayment | undefined> {
  const text = await store.get(key)
  return text === undefined ? undefined : (JSON.parse(text) as SignedPayment)
}
