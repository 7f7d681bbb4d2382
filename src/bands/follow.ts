import { type Dispatcher, request } from 'undici'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { readBody } from './announce.js'
import { type ReadPublication, verifyPublication } from './document.js'
import { publicationMaxBytes } from './protocol.js'
import type { PublisherKeys } from './publisher-keys.js'
import { type Subscription, type SubscriptionState, subscriptionKey } from './subscription.js'

/** How publishers are asked. */
export interface Asking {
  readonly dispatcher: Dispatcher
  readonly timeoutMs: number
  readonly userAgent: string
}

/** A GET that is followed nowhere else, read to its end. Refusals: `upstream`, `late`, `too-large`, `unknown` (404). */
export async function get(
  url: string,
  maxBytes: number,
  { dispatcher, timeoutMs, userAgent }: Asking,
  end: AbortSignal,
): Promise<Buffer | Refusal> {
  try {
    const signal = AbortSignal.any([end, AbortSignal.timeout(timeoutMs)])
    const answer = await request(url, { dispatcher, signal, headers: { 'user-agent': userAgent } })
    if (answer.statusCode !== 200) {
      answer.body.on('error', () => 'dropped on purpose').destroy()
      const reason = answer.statusCode === 404 ? 'unknown' : 'upstream'
      return refuse(reason, 'upstream', `${url}: status ${answer.statusCode}`)
    }
    const bytes = await readBody(answer.body, maxBytes)
    return bytes ?? refuse('too-large', 'upstream', `${url}: over ${maxBytes} bytes`)
  } catch (error) {
    const late = (error as Error).name === 'TimeoutError'
    return refuse(late ? 'late' : 'upstream', 'upstream', `${url}: ${(error as Error).message}`)
  }
}

/** What it takes to follow. */
export interface Following {
  readonly state: SubscriptionState
  readonly keys: PublisherKeys
  /** Domains of signatures that are accepted. */
  readonly domains: readonly string[]
  readonly asking: Asking
}

/**
 * Asks a publisher for its document, and remembers it before it is used: a document that is older than one seen before is
 * refused for ever after, whatever happens to this process. Two documents of one sequence are refused as well.
 */
export async function follow(
  subscription: Subscription,
  { state, keys, domains, asking }: Following,
  nowMs: number,
  end: AbortSignal,
): Promise<ReadPublication | Refusal> {
  const key = subscriptionKey(subscription)
  const before = state.seen.get(key)
  const signers = await keys.of(subscription, end)
  if (isRefusal(signers)) return signers
  const bytes = await get(`${subscription.url}/indexes`, publicationMaxBytes, asking, end)
  if (isRefusal(bytes)) return bytes
  const expected = { ...signers, domains, sequenceMin: before?.sequence ?? 1 }
  const read = verifyPublication(bytes, expected)
  if (isRefusal(read)) return read
  const { sequence } = read.document
  if (before?.sequence === sequence && before.sha256 !== read.sha256) {
    return refuse('forged', 'upstream', `two documents of sequence ${sequence}`)
  }
  if (before?.sha256 !== read.sha256) {
    // The document first: a sequence without its document would leave nothing to follow.
    await state.keepDocument(subscription, bytes)
    state.seen.set(key, { sequence, sha256: read.sha256, checkedMs: nowMs, problem: '' })
    await state.save()
  }
  return read
}
