import { type Admission, type Denial, type Grant, isDenial } from '../admission/admission-port.js'
import type { Line } from '../attest/line.js'
import type { OfferedFile } from '../bands/band-offer.js'
import { bandBlobPath } from '../bands/blob-path.js'
import { parseRange } from '../format/range.js'
import { answerDenied, unlimited } from '../gateway/admit.js'
import { answerBlockedAs } from '../gateway/blocked-answer.js'
import type { Offered } from '../gateway/gateway-parts.js'
import type { Guard } from '../gateway/guard.js'
import { type Plan, type Planned, plan, readConditions } from '../gateway/plan.js'
import { send } from '../gateway/send.js'
import { enter } from '../gateway/steps.js'
import type { Reply, Request, SplitHead } from '../http/exchange.js'
import { answerSmall, noStore } from '../http/small-answer.js'
import { splitHeadOf } from '../http/write-head.js'
import { idLead } from '../serving/cors.js'
import { closeOpened } from '../serving/exchange-answers.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'
import { type StatementParts, Statements } from '../serving/statements.js'
import type { Content } from '../store/content.js'
import { isSameFile, stampOf } from '../store/file-stamp.js'
import type { FileContent } from '../store/mapped.js'
import { PrefixedContent } from '../store/prefixed.js'
import { torrentHeadMaxBytes, trackerOf, withTracker } from '../torrent/named-tracker.js'

export interface IndexParts extends Offered, StatementParts {
  readonly requestLog: RequestLog
  readonly admission?: Admission | undefined
  readonly guard?: Guard | undefined
}

/** One request to these routes. */
export interface Ask {
  readonly request: Request
  readonly reply: Reply
  /** First lines of every block. */
  readonly first: string
  /** Answers with bytes of files are finished through the exchange, and not by `reply`. */
  readonly exchange: Exchange
}

/** Headers of a body. */
interface About {
  readonly type: string
  /** Hex; absent: the answer states no digest. */
  readonly sha256?: string
  /** Value of Cache-Control. */
  readonly caching: string
  /** Not metered. */
  readonly isFree?: true
}

/** A larger .torrent file was not made by this program, and is not read. */
const torrentMaxBytes = 64 * 1024 * 1024
/** A pad is shorter than a piece. */
const padMaxBytes = 64 * 1024 * 1024
const octets = 'application/octet-stream'
const forever = 'max-age=31536000, immutable'
/** Signed heads kept within a second; requests for further files make a signature each. */
const headsMax = 1024

/** Sends what is offered: files of bands from the mapping, planned, metered and signed like content. */
export class BandBytes {
  readonly #statements: Statements
  /** Heads of this second. */
  readonly #heads = new Map<string, SplitHead>()
  #second = -1

  constructor(private readonly parts: IndexParts) {
    this.#statements = new Statements(parts)
  }

  /** Sends a file: cached `forever` under its digest, or revalidated (`again`) under its name. */
  file(ask: Ask, file: OfferedFile | undefined, caching: 'forever' | 'again'): void | Promise<void> {
    if (file === undefined) return answerMissing(ask)
    const { guard } = this.parts
    if (guard?.blocksDigest(Buffer.from(file.sha256, 'hex')) === true) {
      const digest = Buffer.from(file.sha256, 'hex').toString('base64url')
      return answerBlockedAs(ask, guard, `digest: ${digest}`)
    }
    const content = this.#open(file)
    if (content === undefined) return updating(ask)
    const { sha256 } = file
    const how = this.#metered(caching === 'forever' ? forever : 'no-cache')
    return this.#send(ask, content, { type: octets, sha256, caching: how })
  }

  /** A pad file of the torrent: zeros that clients of version 1 request. */
  pad(ask: Ask, length: string): void | Promise<void> {
    const bytes = /^[1-9]\d{0,8}$/.test(length) ? Number(length) : 0
    if (bytes === 0 || bytes > padMaxBytes) return answerMissing(ask)
    return this.#send(ask, zeros(bytes), { type: octets, caching: this.#metered(forever) })
  }

  /** The .torrent file of an infohash that is offered, with the tracker of this gateway where its host is set. Free. */
  async torrent(ask: Ask, infohash: string): Promise<void> {
    const content = this.parts.files.open(`${this.parts.offers.root}/torrents/${infohash}.torrent`)
    if (content === undefined || content.sizeBytes > torrentMaxBytes || content.sizeBytes === 0) {
      content?.close()
      return updating(ask)
    }
    const about = { type: 'application/x-bittorrent', caching: 'public, max-age=86400' }
    const { origin, vocabulary } = this.parts
    const whole =
      origin === undefined ? content : await named(content, trackerOf(origin + vocabulary.pathPrefix))
    return this.#send(ask, whole, { ...about, isFree: true })
  }

  /** Opens the file that was hashed; undefined where it was replaced meanwhile. */
  #open({ sha256, size, stamp }: OfferedFile): FileContent | undefined {
    const content = this.parts.files.open(bandBlobPath(this.parts.offers.root, sha256))
    if (content === undefined) return undefined
    const measured = stampOf(BigInt(stamp.inode), BigInt(stamp.modifiedNs))
    const same = content.sizeBytes === size && isSameFile(content.stamp, measured)
    if (same) return content
    content.close()
    return undefined
  }

  /** Plans, takes tokens, and sends; the content is closed in every case. */
  #send(ask: Ask, content: Content, about: About): void | Promise<void> {
    const { request, exchange } = ask
    exchange.opened = content
    enter(exchange, 'plan')
    const decided = planned(request, content.sizeBytes, about)
    if (decided === undefined || decided.variant === 'refused') {
      closeOpened(exchange)
      return decided === undefined
        ? answerMalformed(ask, "Malformed 'range' header")
        : answerRefusedPlan(ask, decided)
    }
    const { requestLog } = this.parts
    const admission = about.isFree ? undefined : this.parts.admission
    const charge = { request, bytes: decided.bytes, contentType: about.type, domain: 'index' as const }
    const go = (outcome: Grant | Denial): void => {
      if (isDenial(outcome)) {
        closeOpened(exchange)
        answerDenied(requestLog, exchange, outcome)
        return
      }
      enter(exchange, 'head')
      const split = this.#headOf(exchange, decided, about)
      const lines = decided.lines + outcome.lines
      const head = { status: decided.status, split, id: exchange.requestId, lines }
      send(requestLog, exchange, head, decided, content, outcome, { reason: 'band' })
    }
    enter(exchange, 'admit')
    const outcome = admission?.admit(charge) ?? unlimited
    return outcome instanceof Promise ? outcome.then(go) : go(outcome)
  }

  /** The head of such an answer without the request's id and the lines of this answer alone; signed once a second. */
  #headOf({ request, method, path }: Exchange, { variant, status }: Planned, about: About): SplitHead {
    const seconds = Math.floor(this.parts.clock.now() / 1000)
    if (seconds !== this.#second || this.#heads.size >= headsMax) {
      this.#second = seconds
      this.#heads.clear()
    }
    const { type, sha256, caching } = about
    const key = `${variant} ${method} ${path} ${sha256}`
    const known = this.#heads.get(key)
    if (known !== undefined) return known
    const served = variant !== 'unchanged'
    const digest = `sha-256=:${Buffer.from(sha256 ?? '', 'hex').toString('base64')}:`
    const digests: readonly Line[] =
      sha256 === undefined
        ? []
        : [
            ['ETag', `"${sha256}"`],
            ['Repr-Digest', digest],
            ...(variant === 'whole' ? [['Content-Digest', digest] as const] : []),
            ...(served ? [[`${this.parts.vocabulary.gateway}Index-File`, sha256] as const] : []),
          ]
    const lines: readonly Line[] = [
      ...(served ? [['Content-Type', type] as const] : []),
      ['Accept-Ranges', 'bytes'],
      ['Cache-Control', caching],
      ...digests,
    ]
    const split = splitHeadOf(status, idLead, this.#statements.block(request, '', status, lines))
    this.#heads.set(key, split)
    return split
  }

  /** Cache-Control of metered answers: private while limits are on, because the client's tokens paid for it. */
  #metered(caching: string): string {
    return `${this.parts.admission === undefined ? 'public' : 'private'}, ${caching}`
  }
}

/** One range is answered as such, several with the whole file. Undefined: the range is malformed. */
function planned(request: Request, sizeBytes: number, { sha256 }: About): Plan | undefined {
  const conditions = readConditions(request)
  const wanted = parseRange(conditions.range, sizeBytes)
  if (wanted.kind === 'malformed') return undefined
  const several = wanted.kind === 'ranges' && wanted.ranges.length > 1
  const tag = sha256 === undefined ? undefined : `"${sha256}"`
  return plan(several ? { ...conditions, range: undefined } : conditions, fileShown(sizeBytes, tag))
}

/** A file of a band, as `plan` compares conditions with it. */
export function fileShown(sizeBytes: number, entityTag: string | undefined): Parameters<typeof plan>[1] {
  return { sizeBytes, contentType: octets, entityTag, boundary: () => '' }
}

/** The .torrent file `stored` with `tracker` in it; closed where it cannot be read, by whoever sends it otherwise. */
async function named(stored: Content, tracker: string): Promise<Content> {
  try {
    const reach = Math.min(stored.sizeBytes, torrentHeadMaxBytes)
    const bytes =
      stored.read(0, reach) ?? ((await stored.ready(0, reach)) ? stored.read(0, reach) : undefined)
    const head = bytes === undefined ? undefined : withTracker(bytes, tracker)
    return head === undefined ? stored : new PrefixedContent(head.bytes, stored, head.from)
  } catch (error) {
    stored.close()
    throw error
  }
}

function zeros(sizeBytes: number): Content {
  const piece = Buffer.alloc(Math.min(sizeBytes, 64 * 1024))
  return {
    sizeBytes,
    read: (start, end) => piece.subarray(0, Math.min(end - start, piece.length)),
    ready: () => Promise.resolve(true),
    close: () => undefined,
  }
}

/** Answers 404, which nobody may keep. */
export function answerMissing({ request, reply, first }: Ask): void {
  answerSmall(request, reply, first, { status: 404, lines: noStore, json: {} })
}

/** Answers 400 in JSON, which nobody may keep. */
export function answerMalformed({ request, reply, first }: Ask, error: string): void {
  answerSmall(request, reply, first, { status: 400, lines: noStore, json: { error } })
}

function updating({ request, reply, first }: Ask): void {
  const json = { error: 'Index file is being updated' }
  answerSmall(request, reply, first, { status: 503, lines: `${noStore}\r\nRetry-After: 60`, json })
}

/** Answers with a plan that refuses the request. */
export function answerRefusedPlan(
  { request, reply, first }: Ask,
  { status, text, lines }: Extract<Plan, { variant: 'refused' }>,
): void {
  answerSmall(request, reply, first, { status, lines: `${noStore}${lines}`, json: { error: text } })
}
