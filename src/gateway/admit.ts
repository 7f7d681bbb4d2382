import type { Admission, Denial, Domain, Grant } from '../admission/admission-port.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall, type SmallAnswer } from '../http/small-answer.js'
import { answerFlow, answerGone, type Flow, type Ledger } from '../serving/flow.js'

/** The grant of a gateway without limits. */
export const unlimited: Grant = {
  lines: '',
  settle() {
    // Nothing was taken.
  },
}

/** Takes tokens for the planned answer. Without a promise where the buckets are in memory. */
export function admitFlow(
  admission: Admission | undefined,
  { request, naming, firstTokenTaken }: Flow,
  bytes: number,
  contentType: string,
): Grant | Denial | Promise<Grant | Denial> {
  if (admission === undefined) return unlimited
  const name = naming?.name
  if (name === undefined) return admission.admit({ request, bytes, contentType, firstTokenTaken })
  return admission.admit({ request, bytes, contentType, firstTokenTaken, name })
}

/**
 * Takes the first token before a source is asked, once a flow. False: the flow was answered, because it was denied or the
 * client left.
 */
export async function precheckFlow(
  admission: Admission | undefined,
  ledger: Ledger,
  flow: Flow,
): Promise<boolean> {
  if (admission === undefined || flow.firstTokenTaken) return true
  const outcome = await admission.precheck(flow.request, flow.naming?.name)
  if (typeof outcome === 'boolean') flow.firstTokenTaken = outcome
  if (flow.reply.aborted) answerGone(ledger, flow)
  else if (typeof outcome === 'boolean') return true
  else answerDenied(ledger, flow, outcome)
  return false
}

/** Answers a flow that was denied, and settles it. */
export function answerDenied(
  ledger: Ledger,
  flow: Flow,
  { status, contentType, lines, body, reason, holdMs = 0 }: Denial,
): void {
  flow.reply.hold(holdMs)
  const answer = deniedAnswer({ status, contentType, lines, body, reason })
  answerFlow(ledger, flow, answer, { reason, fault: 'client' })
}

/** A payment offer (402) is read by wallets and has a page of its own, so it is sent unchanged. */
function deniedAnswer({ status, contentType, lines, body, reason }: Denial): SmallAnswer {
  const answer = { status, type: contentType, lines, body }
  return status === 402 ? answer : { ...answer, words: reason }
}

/**
 * The same for routes without flows: takes tokens for `bytes`, then calls `send`, which tells how many bytes went out. Where
 * it is denied, the answer is sent here.
 */
export async function admitted(
  admission: Admission | undefined,
  asked: { readonly request: Request; readonly reply: Reply; readonly first: string },
  charge: { readonly bytes: number; readonly contentType: string; readonly domain: Domain },
  send: (grant: Grant) => number | Promise<number>,
): Promise<void> {
  const { request, reply, first } = asked
  const outcome = (await admission?.admit({ request, ...charge })) ?? unlimited
  if ('status' in outcome) {
    reply.hold(outcome.holdMs ?? 0)
    answerSmall(request, reply, first, deniedAnswer(outcome))
    return
  }
  let sent = 0
  try {
    sent = await send(outcome)
  } finally {
    outcome.settle(sent)
  }
}
