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
  const accepted = [...(request.accepted ?? [200, 202]), 402]
  let payment = await rememberedPayment(payer.store, key)
  if (payment === undefined || payment.validUntilMs <= nowMs()) {
    const answer = await service.ask({ ...request, accepted })
    if (answer.status !== 402) return answer
    // Only where the service's clock agrees that it is over: this one may have jumped, and two payments would be good then.
    if (payment === undefined || payment.validUntilMs <= (timeOf(answer) ?? nowMs())) {
      const offers = offersOf(answer)
      if (offers.length > 0) checkClock(answer)
      payment = await signPayment(offers, payer.signer, payer.maxMUSDCAmount)
      await payer.store.set(key, JSON.stringify(payment))
    }
  }
  return await sendPaid(service, { ...request, accepted }, payment)
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
