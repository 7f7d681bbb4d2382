import { type PaymentRoute, plainAnswer } from './payment-route.js'
import { isServiceToken } from './service-token.js'

const unauthorized = plainAnswer(401, 'No authorization or user provided for authorized route!')

/** Lets an answer be given to services of the operator alone: others get `refusal`. `now`: ms since 1970. */
export function guardedBy(
  secret: string,
  now: () => number,
  refusal = unauthorized,
): (answer: PaymentRoute['answer']) => PaymentRoute['answer'] {
  return (answer) => async (call) =>
    (await isServiceToken(call.header('authorization'), secret, now())) ? answer(call) : refusal
}
