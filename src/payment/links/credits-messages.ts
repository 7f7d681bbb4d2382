import type { Address } from '../../actor/mailbox-address.js'
import { refuse } from '../../format/refusal.js'
import { isLedgerGone } from '../../ledger/ledger-port.js'
import type { CreditsPort, UsdcPort } from '../credits-port.js'

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

/** The methods of each port. A message calls only a method that is listed here, by its name. */
const usdcCalls: Calls<UsdcPort> = {
  offer: true,
  look: true,
  pay: true,
  outcome: true,
  finish: true,
  own: true,
  units: true,
}
const creditsCalls: Calls<CreditsPort> = {
  price: true,
  check: true,
  reserve: true,
  settle: true,
  refund: true,
  withdraw: true,
  approve: true,
  revoke: true,
}

type Calls<Port> = Readonly<Record<keyof Port, true>>

type Call = (given: unknown) => Promise<unknown>

/** Calls one of a port's calls by its name. Throws a TypeError where there is none of that name. */
function callByName<Port extends object>(
  port: Port,
  calls: Calls<Port>,
  name: keyof Port,
  given: unknown,
): Promise<unknown> {
  if (!Object.hasOwn(calls, name)) throw new TypeError(`there is no call ${String(name)}`)
  return (port[name] as Call).call(port, given)
}

/** A port whose calls go to `ask`, which resolves with what the call of that name resolves with, or with a refusal. */
function portByMessages<Port extends object>(
  calls: Calls<Port>,
  ask: (name: keyof Port, given: unknown) => Promise<unknown>,
): Port {
  const names = Object.keys(calls) as (keyof Port)[]
  return Object.fromEntries(names.map((name) => [name, (given: unknown) => ask(name, given)])) as Port
}

/** Whether a message from elsewhere names a call of `UsdcPort`. */
export const isUsdcCall = (name: unknown): boolean =>
  typeof name === 'string' && Object.hasOwn(usdcCalls, name)

/** Answers a call with an implementation on this thread; undefined: there is none. */
export async function usdcAnswer(usdc: UsdcPort | undefined, request: UsdcRequest): Promise<UsdcReply> {
  if (usdc === undefined) return refuse('unknown', 'self', 'no USDC is taken by x402')
  return (await callByName(usdc, usdcCalls, request.usdc, request.given)) as UsdcReply
}

/** On the payment thread: answers messages with its implementations. An unreachable ledger is a refusal. */
export function answersCredits(
  credits: CreditsPort,
  usdc: UsdcPort | undefined,
): (request: CreditsRequest) => Promise<CreditsReply> {
  return async (request) => {
    try {
      if ('usdc' in request) return await usdcAnswer(usdc, request)
      return (await callByName(credits, creditsCalls, request.call, request.given)) as CreditsReply
    } catch (error) {
      if (!isLedgerGone(error)) throw error
      return refuse('upstream', 'self', 'the ledger cannot be reached')
    }
  }
}

/** The payment service of this program: each call is a message to its thread, answered by `answersCredits`. */
export function creditsByMessages(thread: Address<CreditsRequest, CreditsReply>): CreditsPort {
  return portByMessages(creditsCalls, (call, given) => thread.ask({ call, given } as CreditsRequest))
}

/** A `UsdcPort` whose calls go to `ask`. */
export function usdcByMessages(ask: (request: UsdcRequest) => Promise<unknown>): UsdcPort {
  return portByMessages(usdcCalls, (usdc, given) => ask({ usdc, given } as UsdcRequest))
}

/** The same over HTTP, for a payment service in another program. */
export { RemoteCredits } from './remote-credits.js'
export { RemoteUsdc } from './remote-usdc.js'
