import type { Address } from '../actor/address.js'
import type { Refusal } from '../format/refusal.js'
import type { CreditsPort } from './port.js'

/** A call of `CreditsPort` as a message to the payment thread. */
export type CreditsRequest = {
  [Name in keyof CreditsPort]: { readonly call: Name; readonly given: Parameters<CreditsPort[Name]>[0] }
}[keyof CreditsPort]

export type CreditsReply = Awaited<ReturnType<CreditsPort[keyof CreditsPort]>>

/** Answers messages with an implementation on this thread. */
export function creditsAnswering(credits: CreditsPort): (request: CreditsRequest) => Promise<CreditsReply> {
  return async (request) => {
    switch (request.call) {
      case 'price':
        return credits.price(request.given)
      case 'check':
        return credits.check(request.given)
      case 'reserve':
        return credits.reserve(request.given)
      case 'settle':
        return credits.settle(request.given)
      case 'refund':
        return credits.refund(request.given)
      case 'approve':
        return credits.approve(request.given)
      case 'revoke':
        return credits.revoke(request.given)
    }
  }
}

/** The payment service of this program, over a line to its thread. */
export function embeddedCredits(thread: Address<CreditsRequest, CreditsReply>): CreditsPort {
  const ask = async <Name extends keyof CreditsPort>(
    call: Name,
    given: Parameters<CreditsPort[Name]>[0],
  ): Promise<Awaited<ReturnType<CreditsPort[Name]>> | Refusal> => {
    const request = { call, given } as CreditsRequest
    // The thread answers each call with what that call resolves with.
    return (await thread.ask(request)) as Awaited<ReturnType<CreditsPort[Name]>> | Refusal
  }
  return {
    price: (bytes) => ask('price', bytes),
    check: (order) => ask('check', order),
    reserve: (order) => ask('reserve', order),
    settle: (itemId) => ask('settle', itemId),
    refund: (itemId) => ask('refund', itemId),
    approve: (order) => ask('approve', order),
    revoke: (order) => ask('revoke', order),
  }
}

/** The same over HTTP, where the payment service runs elsewhere. */
export { RemoteCredits, type RemoteCreditsOptions } from './remote.js'
