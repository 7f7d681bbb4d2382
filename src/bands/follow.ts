import { type Dispatcher, request } from 'undici'
import { abortAfter } from '../actor/clock.js'
import { expected } from '../format/bug.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { readBodyUpTo } from '../torrent/announce.js'
import { type Expected, type ReadPublication, verifyPublication } from './document.js'
import { publicationMaxBytes } from './publication.js'
import type { PublisherKeys } from './publisher-keys.js'
import { type Subscription, type SubscriptionState, subscriptionKey } from './subscription.js'

/** Options of HTTP requests to publishers. */
export interface HttpOptions {
  readonly dispatcher: Dispatcher
  readonly timeoutMs: number
  readonly userAgent: string
}

/** A GET without redirects, read to its end. Refusals: `upstream`, `late`, `too-large`, `unknown` (404). */
export async function get(
  url: string,
  maxBytes: number,
  { dispatcher, timeoutMs, userAgent }: HttpOptions,
  end: AbortSignal,
): Promise<Buffer | Refusal> {
  try {
    const signal = AbortSignal.any([end, abortAfter(timeoutMs)])
    const answer = await request(url, { dispatcher, signal, headers: { 'user-agent': userAgent } })
    if (answer.statusCode !== 200) {
      answer.body.on('error', () => 'dropped on purpose').destroy()
      const reason = answer.statusCode === 404 ? 'unknown' : 'upstream'
      return refuse(reason, 'upstream', `${url}: status ${answer.statusCode}`)
    }
    const bytes = await readBodyUpTo(answer.body, maxBytes)
    return bytes ?? refuse('too-large', 'upstream', `${url}: over ${maxBytes} bytes`)
  } catch (error) {
    const { name, message } = expected(error)
    return refuse(name === 'TimeoutError' ? 'late' : 'upstream', 'upstream', `${url}: ${message}`)
  }
}

/** What `follow` needs. */
export interface FollowParts {
  readonly state: SubscriptionState
  readonly keys: PublisherKeys
  /** Domains of signatures that are accepted. */
  readonly domains: readonly string[]
  readonly http: HttpOptions
}

/** A document, and the address of the routes that it came from. */
export interface Followed extends ReadPublication {
  readonly url: string
}

/**
 * Fetches the document of a publisher from its addresses in turn. Its sequence is written to disk before it is used,
 * so that an older document is refused also after a crash. Two documents of one sequence are refused as well.
 */
export async function follow(
  subscription: Subscription,
  { state, keys, domains, http: asking }: FollowParts,
  nowMs: number,
  end: AbortSignal,
): Promise<Followed | Refusal> {
  const key = subscriptionKey(subscription)
  const before = state.seen.get(key)
  const signers = await keys.of(subscription, end)
  if (isRefusal(signers)) return signers
  const expected = { ...signers, domains, sequenceMin: before?.sequence ?? 1 }
  const found = await firstOf(addressesOf(subscription, before?.url), expected, asking, end)
  if (isRefusal(found)) return found
  const { bytes, url, ...read } = found
  const { sequence } = read.document
  if (before?.sequence === sequence && before.sha256 !== read.sha256) {
    return refuse('forged', 'upstream', `two documents of sequence ${sequence}`)
  }
  if (before?.sha256 !== read.sha256) {
    // The document is written first: after a crash in between, a sequence without its document could not be followed.
    await state.keepDocument(subscription, bytes)
    state.seen.set(key, { sequence, sha256: read.sha256, checkedMs: nowMs, problem: '', url })
    await state.save()
  }
  return { ...read, url }
}

/** The one that answered last comes first. */
function addressesOf({ url, others = [] }: Subscription, last: string | undefined): string[] {
  const all = [url, ...others]
  return last !== undefined && all.includes(last) ? [last, ...all.filter((one) => one !== last)] : all
}

/** The first document that may be followed. The refusal of several lists the answer of each address. */
async function firstOf(
  urls: readonly string[],
  expected: Expected,
  asking: HttpOptions,
  end: AbortSignal,
): Promise<(Followed & { readonly bytes: Uint8Array }) | Refusal> {
  const refusals: Refusal[] = []
  for (const url of urls) {
    const bytes = await get(`${url}/indexes`, publicationMaxBytes, asking, end)
    const read = isRefusal(bytes) ? bytes : verifyPublication(bytes, expected)
    if (!isRefusal(bytes) && !isRefusal(read)) return { ...read, bytes, url }
    if (isRefusal(read))
      refusals.push(isRefusal(bytes) ? read : { ...read, message: `${url}/indexes: ${read.message}` })
    // Its other addresses are on the same host, which does not answer, so they are not tried.
    if (end.aborted || (isRefusal(bytes) && bytes.refused === 'late')) break
  }
  return weightiest(refusals)
}

/** The refusal of a wrong document is more informative than that of an address without one. */
function weightiest(refusals: readonly Refusal[]): Refusal {
  const [first, ...others] = refusals
  if (first === undefined) throw new Error('a publisher without addresses')
  if (others.length === 0) return first
  const worst = refusals.find(({ refused }) => refused !== 'unknown') ?? first
  return { ...worst, message: refusals.map(({ message }) => message).join('; ') }
}
