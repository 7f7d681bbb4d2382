import type { FairSlots } from '../actor/fair-slots.js'
import { refuse } from '../format/refusal.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall } from '../http/small-answer.js'
import { refusedAnswer } from './answer.js'

/** Tells clients apart: whose share of what is scarce a request uses. */
export type ClientOf = (request: Request) => string

/** A request and the way back. */
export interface Exchange {
  readonly request: Request
  readonly reply: Reply
  /** Header lines that go first. */
  readonly first: string
}

/** Does `act` in a slot of the client's; answers 503 where the slots, or the client's share of them, are taken. */
export async function inSlot(
  slots: FairSlots,
  client: string,
  { request, reply, first }: Exchange,
  act: () => Promise<void>,
): Promise<void> {
  const leave = slots.take(client)
  if (typeof leave === 'string') {
    const busy = refuse('busy', leave === 'client' ? 'client' : 'self', `no slot: ${leave}`)
    return answerSmall(request, reply, first, refusedAnswer(busy))
  }
  try {
    await act()
  } finally {
    leave()
  }
}
