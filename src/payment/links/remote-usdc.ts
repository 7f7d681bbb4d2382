import type { Clock } from '../../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { ordersPath } from '../credits-port.js'
import { type PaymentAnswer, ServiceLink, type ServiceLinkOptions } from './service-link.js'

/** The way to the `UsdcPort` of a payment service elsewhere: `usdcByMessages` makes the port of its `ask`. */
export class RemoteUsdc {
  readonly #link: ServiceLink

  /** `limitMs`: for one answer. `settleMs`: for an answer that waits for the facilitator. */
  constructor(
    private readonly options: ServiceLinkOptions & { readonly settleMs?: number },
    clock: Clock,
  ) {
    this.#link = new ServiceLink(options, clock)
  }

  /** Refusals: `late`, `upstream`, and what the service itself refuses with. Never rejects but for bugs. */
  async ask(request: { readonly usdc: string }): Promise<unknown> {
    const { limitMs, settleMs = limitMs } = this.options
    const isLong = request.usdc === 'look' || request.usdc === 'pay'
    const answer = await this.#link.ask(ordersPath, JSON.stringify(request), isLong ? settleMs : limitMs)
    return isRefusal(answer) ? answer : replyOf(answer)
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}

function replyOf({ status, text }: PaymentAnswer): object | Refusal {
  // It sells nothing for USDC.
  if (status === 404) return refuse('unknown', 'upstream', 'no USDC is taken by x402')
  const wrong = (): Refusal => refuse('upstream', 'upstream', `the payment service: status ${status}`)
  try {
    const value: unknown = JSON.parse(text)
    return status === 200 && typeof value === 'object' && value !== null ? value : wrong()
  } catch (error) {
    if (error instanceof SyntaxError) return wrong()
    throw error
  }
}
