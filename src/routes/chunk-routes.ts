import type { Meter, Meters } from '../actor/meter.js'
import type { Admission } from '../admission/admission-port.js'
import { type Line, safeValue } from '../attest/line.js'
import { digestLines } from '../attest/trust-headers.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import type { ChunkFinder, FoundChunk } from '../chain/chunk-finder.js'
import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import { isRefusal, refuse } from '../format/refusal.js'
import { admitted } from '../gateway/admit.js'
import { answerBlocked, logRefusal } from '../gateway/blocked-answer.js'
import type { Guard } from '../gateway/guard.js'
import { noContent } from '../gateway/relayed-body.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Operations } from '../http/operation.js'
import { answerSmall, jsonType, noStore, textType } from '../http/small-answer.js'
import { sha256 } from '../proof/digest.js'
import { type ClientOf, inSlot, type SlotRequest } from '../serving/in-slot.js'
import { refusedAnswer } from '../serving/refused-answer.js'
import { RequestSlots } from '../serving/request-slots.js'
import type { Route } from '../serving/route.js'
import { isUnchanged, type StatementParts, Statements } from '../serving/statements.js'
import type { DigestLearner, Verdict } from './digest-learner.js'

export interface ChunkRouteParts extends StatementParts {
  readonly finder: ChunkFinder
  readonly meters: Meters
  /** Absent: nothing is blocked. */
  readonly blocking?: { readonly guard: Guard; readonly learner: DigestLearner }
  /** Answers on their way to clients at once: each holds up to 400 KiB until the slowest reader has it. */
  readonly answersMax: number
  readonly clientOf: ClientOf
  /** Seconds of caching for chunks so deep in the chain that no fork can change them. */
  readonly settledSeconds: number
  /** Absent: nobody is limited. */
  readonly admission?: Admission
  /** Bytes for which tokens are taken before a chunk in JSON is found; those of the difference are returned. */
  readonly pricedBytes: number
}

const notFound = {
  status: 404,
  type: textType,
  lines: '\r\nCache-Control: public, max-age=10, must-revalidate',
  body: 'Not Found',
}

/** Answer for a chunk whose transaction would have to be transferred whole before it is known whether it is blocked. */
const unjudged = {
  status: 503,
  type: textType,
  lines: noStore,
  body: 'Too large to compare with what is blocked here by its hash: ask for all of it by its id',
}

/** Longer proofs stay out of the head: many clients refuse more than 16 KiB of header lines. */
const pathTextMax = 6000

const rawType = 'application/octet-stream'

const statuses = [200, 304, 400, 402, 404, 429, 451, 502, 503, 504]

/** Largest size of a chunk; tokens for the difference are returned. */
const rawBytes = 262_144

/** The body for a chunk. */
interface Shown {
  readonly type: string
  readonly body: Uint8Array
  /** SHA-256 of the body. */
  readonly digest: Uint8Array
}

class ChunkRoute implements Route {
  readonly family = 'other'
  readonly path = '/chunk/'
  readonly methods = ['GET', 'HEAD']
  readonly about: Operations = [
    { path: '/chunk/{offset}', summary: 'The chunk at a weave offset with its proofs', statuses },
    { path: '/chunk/{offset}/data', summary: 'The bytes of a chunk', statuses, type: rawType },
  ]
  readonly #statements: Statements
  readonly #outcomes: Readonly<Record<'cache' | 'node' | 'absent' | 'failed', Meter>>
  readonly #answers: RequestSlots

  constructor(private readonly parts: ChunkRouteParts) {
    this.#statements = new Statements(parts)
    this.#answers = RequestSlots.quarters(parts.answersMax)
    const of = (outcome: string): Meter => parts.meters.of('chunk_requests_total', { outcome })
    this.#outcomes = { cache: of('cache'), node: of('node'), absent: of('absent'), failed: of('failed') }
  }

  async handle(request: Request, reply: Reply, first: string): Promise<void> {
    const target = /^\/chunk\/([^/]*)(\/data)?\/?$/i.exec(request.path)
    if (target === null) return answerSmall(request, reply, first, notFound)
    const [, text = '', data] = target
    if (!/^[0-9]+$/.test(text)) {
      const wrong = { status: 400, type: textType, lines: noStore, body: 'Invalid offset' }
      return answerSmall(request, reply, first, wrong)
    }
    const offset = Number(text)
    // Offsets begin at 1, and no weave reaches 2^53.
    if (offset === 0 || !Number.isSafeInteger(offset)) return answerSmall(request, reply, first, notFound)
    const client = this.parts.clientOf(request)
    const call = { request, reply, first }
    await inSlot(this.#answers, client, call, async () => {
      const raw = data !== undefined
      const { admission, pricedBytes } = this.parts
      const charge = {
        bytes: request.method === 'HEAD' ? 0 : raw ? rawBytes : pricedBytes,
        contentType: raw ? rawType : jsonType,
        domain: 'chunk',
      } as const
      await admitted(admission, call, charge, ({ lines }) => {
        return this.#answer(request, reply, first + lines, offset, raw)
      })
    })
  }

  /** Resolves with the bytes of the chunk that were sent. */
  async #answer(
    request: Request,
    reply: Reply,
    first: string,
    offset: number,
    raw: boolean,
  ): Promise<number> {
    const found = await this.parts.finder.find(offset, this.parts.clientOf(request))
    if (isRefusal(found)) {
      const absent = found.refused === 'unknown'
      this.#outcomes[absent ? 'absent' : 'failed'].add(1)
      if (!absent) logRefusal(this.parts.log, request, found)
      answerSmall(request, reply, first, absent ? notFound : refusedAnswer(found))
      return 0
    }
    this.#outcomes[found.node === undefined ? 'cache' : 'node'].add(1)
    const receipt = await this.#cleared({ request, reply, first }, found)
    if (receipt === undefined) return 0
    const shown = raw ? rawOf(found) : jsonOf(found)
    const { digest } = shown
    const unchanged = isUnchanged(request, digest)
    const { vocabulary: words } = this.parts
    const lines = [
      ...this.#cacheLines(found),
      ...(unchanged ? [] : [['Content-Type', shown.type] as const]),
      ...placeLines(found, offset, raw, words),
      // A 304 has no content, so it has no Content-Digest.
      ...digestLines(digest, unchanged ? undefined : 'Content-Digest', words).filter(
        ([name]) => name !== `${words.gateway}Digest`,
      ),
    ]
    const status = unchanged ? 304 : 200
    const head = { status, block: this.#statements.block(request, first + receipt, status, lines) }
    if (unchanged) reply.endEmpty(head)
    else if (request.method === 'HEAD') reply.endEmpty(head, shown.body.length)
    else return (await reply.stream(head, [{ bytes: shown.body }], noContent)).bytes
    return 0
  }

  /**
   * Header lines for the answer where the chunk may go out; undefined: it may not, and that is answered. While something is
   * blocked, a chunk whose transaction is unknown is not served, because it might belong to blocked content.
   */
  async #cleared(call: SlotRequest, found: FoundChunk): Promise<string | undefined> {
    const { guard, learner } = this.parts.blocking ?? {}
    if (guard === undefined || learner === undefined || !guard.isOn) return ''
    const { request, reply, first } = call
    const { id } = found.span
    if (id === undefined) {
      const unnamed = refuse('busy', 'self', 'the transaction of the chunk could not be named')
      answerSmall(request, reply, first, refusedAnswer(unnamed))
      return undefined
    }
    const known = wholeVerdict(guard, id, found) ?? learner.verdict(id, found.span.sizeBytes)
    const judged =
      known === 'unlearned'
        ? await this.#learned(call, learner, id, found.span.sizeBytes)
        : { verdict: await known, lines: '' }
    if (judged === undefined) return undefined
    const { verdict, lines } = judged
    if (verdict === 'clear') return lines
    if (verdict === 'blocked') answerBlocked(request, reply, first + lines, guard, id)
    else if (verdict.refused === 'too-large') answerSmall(request, reply, first + lines, unjudged)
    else answerSmall(request, reply, first + lines, refusedAnswer(verdict))
    return undefined
  }

  /**
   * The client that causes the transfer of a whole transaction pays for it, also by HEAD. Undefined: it was denied, and
   * answered.
   */
  async #learned(
    call: SlotRequest,
    learner: DigestLearner,
    id: Id,
    bytes: number,
  ): Promise<{ readonly verdict: Verdict; readonly lines: string } | undefined> {
    const { admission, clientOf } = this.parts
    let judged: { readonly verdict: Verdict; readonly lines: string } | undefined
    await admitted(admission, call, { bytes, contentType: rawType, domain: 'chunk' }, async ({ lines }) => {
      const { isFresh, verdict } = learner.learn(id, clientOf(call.request))
      judged = { verdict: await verdict, lines }
      return isFresh ? bytes : 0
    })
    return judged
  }

  #cacheLines({ node, span }: FoundChunk): Line[] {
    const cached: Line = ['X-Cache', node === undefined ? 'HIT' : 'MISS']
    const { settledSeconds } = this.parts
    if (!span.settled) return [cached]
    return [cached, ['Cache-Control', `public, max-age=${settledSeconds}, immutable`]]
  }
}

/** `GET|HEAD /chunk/{offset}` (JSON, as nodes answer) and `/chunk/{offset}/data` (the bytes), proven before they are sent. */
export function chunkRoute(parts: ChunkRouteParts): Route {
  return new ChunkRoute(parts)
}

/**
 * Verdict on a chunk that is all of its transaction: its own hash is the digest of the content. Undefined: the transaction
 * has more chunks.
 */
function wholeVerdict(guard: Guard, id: Id, { span, proven }: FoundChunk): Verdict | undefined {
  if (proven.chunk.length < span.sizeBytes) return undefined
  return guard.blocksKnown(id) || guard.blocksDigest(rawOf({ proven }).digest) ? 'blocked' : 'clear'
}

function rawOf({ proven }: Pick<FoundChunk, 'proven'>): Shown {
  const { chunk, dataPath } = proven
  // A path ends with the hash of the chunk and a note of 32 bytes; that the chunk has this hash was proven.
  return { type: rawType, body: chunk, digest: dataPath.subarray(-64, -32) }
}

function jsonOf({ proven, span }: FoundChunk): Shown {
  const parts = ['{"chunk":"', encodeBase64url(proven.chunk)]
  parts.push('","data_path":"', encodeBase64url(proven.dataPath))
  if (span.txPath !== undefined) parts.push('","tx_path":"', encodeBase64url(span.txPath))
  parts.push('","packing":"unpacked"}')
  // Written into one buffer, without JSON.stringify: base64url needs no escaping, and joining strings of a third of a
  // megabyte would take most of the time.
  const body = Buffer.allocUnsafeSlow(parts.reduce((size, part) => size + part.length, 0))
  parts.reduce((at, part) => at + body.write(part, at, 'latin1'), 0)
  return { type: jsonType, body, digest: sha256(body) }
}

/**
 * Headers with the origin of the bytes and what they belong to. JSON holds the proofs already, so only raw answers have
 * them as lines.
 */
function placeLines(found: FoundChunk, offset: number, raw: boolean, words: Vocabulary): Line[] {
  const { proven, span, node } = found
  const start = span.start + proven.start
  const facts: [string, string | number][] = [
    ['Data-Root', encodeBase64url(span.dataRoot)],
    ['Start-Offset', start],
    ['Relative-Start-Offset', proven.start],
    ['Read-Offset', offset - start],
    ['Tx-Data-Size', span.sizeBytes],
    ['Tx-Start-Offset', span.start],
  ]
  if (span.id !== undefined) facts.push(['Tx-Id', span.id])
  if (raw) {
    facts.push(['Tx-Path', span.txPath === undefined ? '' : encodeBase64url(span.txPath)])
    facts.push(['Data-Path', encodeBase64url(proven.dataPath)])
  }
  const lines: Line[] = [
    [`${words.gateway}Chunk-Source-Type`, node === undefined ? 'cache' : 'arweave-network'],
  ]
  if (node !== undefined) {
    lines.push([`${words.gateway}Chunk-Host`, safeValue(node.replace(/^https?:\/\//, ''))])
  }
  for (const [name, value] of facts) {
    const text = String(value)
    if (text.length <= pathTextMax) lines.push([`${words.chain}Chunk-${name}`, text])
  }
  return lines
}
