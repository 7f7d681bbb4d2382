import type { MessagePort } from 'node:worker_threads'
import type { Clock } from '../../actor/clock.js'
import { addressOf } from '../../actor/mailbox-address.js'
import type { CreditsPort, UsdcPort } from '../credits-port.js'
import {
  type CreditsReply,
  type CreditsRequest,
  creditsByMessages,
  RemoteCredits,
  RemoteUsdc,
  usdcByMessages,
} from './credits-messages.js'

/** An uploader gets 503 within a second where the payment service does not answer. */
const limitMs = 800
/** Longer than any settlement takes. */
const settleMs = 75_000

/** How the payment service is reached: over HTTP, by messages within this program, or not at all. */
export interface ServiceLineOptions {
  readonly credits?: { readonly url: string; readonly secret: string }
  readonly creditsPort?: MessagePort
  /** Messages under way at most. */
  readonly mailboxMax: number
}

/** The connection of another service to the payment service. */
export interface ServiceLine {
  readonly credits?: CreditsPort
  readonly usdc?: UsdcPort
  close(): Promise<void>
}

/** The connection that the options select; without `credits` and `usdc` where there is no payment service. */
export function paymentServiceLine(options: ServiceLineOptions, clock: Clock): ServiceLine {
  const { credits: elsewhere, creditsPort, mailboxMax } = options
  if (elsewhere !== undefined) {
    const credits = new RemoteCredits({ ...elsewhere, limitMs, connectionsMax: 64 }, clock)
    const usdc = new RemoteUsdc({ ...elsewhere, limitMs, settleMs, connectionsMax: 64 }, clock)
    const close = async (): Promise<void> => {
      await Promise.all([credits.close(), usdc.close()])
    }
    return { credits, usdc: usdcByMessages((request) => usdc.ask(request)), close }
  }
  const close = async (): Promise<void> => undefined
  if (creditsPort === undefined) return { close }
  const thread = addressOf<CreditsRequest, CreditsReply>(creditsPort, mailboxMax)
  return { credits: creditsByMessages(thread), usdc: usdcByMessages((request) => thread.ask(request)), close }
}
