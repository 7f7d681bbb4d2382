import { refuse } from '../format/refusal.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall } from '../http/small-answer.js'
import { refusedAnswer } from './refused-answer.js'
import type { RequestSlots } from './request-slots.js'

/** Names the client whose share of limited slots a request uses. */
export type ClientOf = (request: Request) => string

/** A request and its reply. */
export interface SlotRequest {
  readonly request: Request
  readonly reply: Reply
  /** Header lines that go first. */
  readonly first: string
}

/** Runs `act` in a slot; answers 503 where all slots, or all of this client's share, are taken. */
export async function inSlot(
  slots: Pick<RequestSlots, 'take'>,
  client: string,
  { request, reply, first }: SlotRequest,
  act: () => Promise<void>,
): Promise<void> {
  const leave = slots.take(client, reply)
  if (typeof leave === 'string') {
    const isTheirs = leave === 'client'
    const message = isTheirs
      ? 'too many requests of this client are being answered'
      : 'too many requests are being answered'
    const busy = refuse('busy', isTheirs ? 'client' : 'self', message)
    return answerSmall(request, reply, first, refusedAnswer(busy))
  }
  try {
    await act()
  } finally {
    leave()
  }
}
