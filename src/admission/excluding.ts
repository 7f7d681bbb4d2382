import type { Facilitator } from './facilitator.js'

type Settling = Pick<Facilitator, 'verify' | 'settle' | 'supported'>

/**
 * A facilitator for which payments of some payers are invalid. Every payment is verified before its settlement is requested, by
 * whatever it came, so none of theirs moves; one that was requested before goes on.
 */
export function excluding(facilitator: Settling, isExcluded: (payer: string) => boolean): Settling {
  return {
    verify: async (message, payer) =>
      isExcluded(payer)
        ? { verdict: 'invalid', reason: 'sender_is_on_the_excluded_address_list' }
        : facilitator.verify(message, payer),
    settle: (message, payer) => facilitator.settle(message, payer),
    supported: () => facilitator.supported(),
  }
}
