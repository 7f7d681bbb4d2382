import type { Address } from '../actor/address.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { isLedgerGone } from '../ledger/port.js'
import type { CreditsPort, UsdcPort } from './port.js'

/** A call of `UsdcPort` as a message, or as JSON to a service elsewhere. */
export type UsdcRequest = {
  [Name in keyof UsdcPort]: { readonly usdc: Name; readonly given: Parameters<UsdcPort[Name]>[0] }
}[keyof UsdcPort]

export type UsdcReply = Awaited<ReturnType<UsdcPort[keyof UsdcPort]>>

/** A call of `CreditsPort` or `UsdcPort` as a message to the payment thread. */
export type CreditsRequest =
  | {
      [Name in keyof CreditsPort]: { readonly call: Name; readonly given: Parameters<CreditsPort[Name]>[0] }
    }[keyof CreditsPort]
  | UsdcRequest

export type CreditsReply = Awaited<ReturnType<CreditsPort[keyof CreditsPort]>> | UsdcReply

/** Answers a call with an implementation on this thread; undefined: there is none. */
export async function usdcAnswer(usdc: UsdcPort | undefined, request: UsdcRequest): Promise<UsdcReply> {
  if (usdc === undefined) return refuse('unknown', 'self', 'no USDC is taken by x402')
  switch (request.usdc) {
    case 'offer':
      return usdc.offer(request.given)
    case 'look':
      return usdc.look(request.given)
    case 'pay':
      return usdc.pay(request.given)
    case 'outcome':
      return usdc.outcome(request.given)
    case 'finish':
      return usdc.finish(request.given)
    case 'own':
      return usdc.own(request.given)
    case 'units':
      return usdc.units(request.given)
  }
}

/** Answers messages with implementations on this thread. A ledger that is gone for a while is a refusal. */
export function creditsAnswering(
  credits: CreditsPort,
  usdc: UsdcPort | undefined,
): (request: CreditsRequest) => Promise<CreditsReply> {
  const answering = async (request: CreditsRequest): Promise<CreditsReply> => {
    if ('usdc' in request) return usdcAnswer(usdc, request)
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
  return async (request) => {
    try {
      return await answering(request)
    } catch (error) {
      if (!isLedgerGone(error)) throw error
      return refuse('upstream', 'self', 'the ledger cannot be reached')
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

/** Calls of `UsdcPort` by way of `ask`. */
export function usdcBy(ask: (request: UsdcRequest) => Promise<unknown>): UsdcPort {
  const call = async <Name extends keyof UsdcPort>(
    usdc: Name,
    given: Parameters<UsdcPort[Name]>[0],
  ): Promise<Awaited<ReturnType<UsdcPort[Name]>> | Refusal> => {
    // Each call is answered with what that call resolves with.
    return (await ask({ usdc, given } as UsdcRequest)) as Awaited<ReturnType<UsdcPort[Name]>> | Refusal
  }
  return {
    offer: (wanted) => call('offer', wanted),
    look: (order) => call('look', order),
    pay: (order) => call('pay', order),
    outcome: (asked) => call('outcome', asked),
    finish: (order) => call('finish', order),
    own: (asked) => call('own', asked),
    units: (bytes) => call('units', bytes),
  }
}

/** The same over HTTP, where the payment service runs elsewhere. */
export { RemoteCredits } from './remote.js'
export { RemoteUsdc } from './remote-usdc.js'
