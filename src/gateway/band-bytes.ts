import { type Admission, isDenial } from '../admission/protocol.js'
import type { Line } from '../attest/line.js'
import { bandBlobPath, type OfferedFile, type Offers } from '../bands/offer.js'
import { parseRange } from '../format/range.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Content } from '../store/content.js'
import type { MappedContent } from '../store/mapped.js'
import { answerSmall, jsonType, noStore } from './answer.js'
import { type Plan, plan, readAsked } from './plan.js'
import { type StatementParts, Statements } from './statements.js'

export interface IndexParts extends StatementParts {
  readonly offers: Offers
  /** The whole file at a path, mapped; undefined where there is none. */
  readonly files: { open(path: string): MappedContent | undefined }
  /** Meters band bytes, where anything is metered. */
  readonly admission?: Admission
}

/** One request to these routes. */
export interface Ask {
  readonly request: Request
  readonly reply: Reply
  /** First lines of every block. */
  readonly first: string
}

type Planned = Exclude<Plan, { variant: 'refused' }>

/** A .torrent file is at most so large: beyond it, it is not one of ours. */
const torrentMaxBytes = 64 * 1024 * 1024
/** A pad is shorter than a piece. */
const padMaxBytes = 64 * 1024 * 1024
const octets = 'application/octet-stream'

/** Sends what is offered: files of bands from the mapping, planned, metered and signed like content. */
export class BandBytes {
  readonly #statements: Statements

  constructor(private readonly parts: IndexParts) {
    this.#statements = new Statements(parts)
  }

  /** A file, `forever` under its digest or to be asked for `again` under its name. */
  file(ask: Ask, file: OfferedFile | undefined, caching: 'forever' | 'again'): void | Promise<void> {
    const { request, first } = ask
    if (file === undefined) return missing(ask)
    if (parseRange(request.header('range'), file.size).kind === 'malformed') {
      return wrong(ask, "Malformed 'range' header")
    }
    const content = this.#open(file)
    if (content === undefined) return updating(ask)
    const tag = `"${file.sha256}"`
    const decided = plan(singleRange(request, file.size), known(file.size, tag))
    if (decided.variant === 'refused') {
      content.close()
      return refused(ask, decided)
    }
    const digest = `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`
    const served = decided.variant !== 'unchanged'
    const lines: Line[] = [
      ...(served ? [['Content-Type', octets] as const] : []),
      ['Accept-Ranges', 'bytes'],
      ['ETag', tag],
      ['Repr-Digest', digest],
      ...(decided.variant === 'whole' ? [['Content-Digest', digest] as const] : []),
      ...(served ? [[`${this.parts.vocabulary.gateway}Index-File`, file.sha256] as const] : []),
    ]
    const block = `${this.#statements.block(request, first, decided.status, lines)}${decided.lines}`
    const answer = { status: decided.status, block: `${block}\r\n${this.#caching(caching)}` }
    return this.#send(ask, answer, decided, content)
  }

  /** A pad file of the torrent: zeros that clients of version 1 ask for. */
  pad(ask: Ask, length: string): void | Promise<void> {
    const bytes = /^[1-9]\d{0,8}$/.test(length) ? Number(length) : 0
    if (bytes === 0 || bytes > padMaxBytes) return missing(ask)
    const decided = plan(singleRange(ask.request, bytes), known(bytes, undefined))
    if (decided.variant === 'refused') return refused(ask, decided)
    const lines = `\r\nContent-Type: ${octets}\r\nAccept-Ranges: bytes${decided.lines}`
    const answer = { status: decided.status, block: `${ask.first}${lines}\r\n${this.#caching('forever')}` }
    return this.#send(ask, answer, decided, zeros(bytes))
  }

  /** The .torrent file of an infohash that is offered. Free. */
  torrent(ask: Ask, infohash: string): void {
    const { request, reply, first } = ask
    const content = this.parts.files.open(`${this.parts.offers.root}/torrents/${infohash}.torrent`)
    if (content === undefined || content.sizeBytes > torrentMaxBytes || content.sizeBytes === 0) {
      content?.close()
      updating(ask)
      return
    }
    const type = 'Content-Type: application/x-bittorrent\r\nCache-Control: public, max-age=86400'
    const head = { status: 200, block: `${first}\r\n${type}` }
    if (request.method === 'HEAD') {
      reply.endEmpty(head, content.sizeBytes)
      content.close()
    } else void reply.stream(head, [{ start: 0, end: content.sizeBytes }], content)
  }

  /** The very file that was measured, or undefined: it was replaced under us, or is being replaced. */
  #open({ sha256, size, stamp }: OfferedFile): MappedContent | undefined {
    const content = this.parts.files.open(bandBlobPath(this.parts.offers.root, sha256))
    if (content === undefined) return undefined
    const { sizeBytes, inode, modifiedNs } = content
    const same =
      sizeBytes === size && String(inode) === stamp.inode && String(modifiedNs) === stamp.modifiedNs
    if (same) return content
    content.close()
    return undefined
  }

  /** Takes the fare, sends, and gives back what was not sent. */
  #send(
    ask: Ask,
    { status, block }: { status: number; block: string },
    decided: Planned,
    content: Content,
  ): void | Promise<void> {
    const { admission } = this.parts
    const { request, reply, first } = ask
    const send = (lines: string, settle: (bytes: number) => void): void => {
      const head = { status, block: `${block}${lines}` }
      if (decided.bytes === 0) {
        content.close()
        if (request.method === 'HEAD' || decided.variant === 'unchanged')
          reply.endEmpty(head, decided.contentLength)
        else reply.end(head)
        settle(0)
        return
      }
      const sent = reply.stream(head, decided.pieces, content)
      if (sent instanceof Promise) void sent.then(({ bytes }) => settle(bytes))
      else settle(sent.bytes)
    }
    if (admission === undefined) return send('', () => undefined)
    const decide = (outcome: Awaited<ReturnType<Admission['admit']>>): void => {
      if (!isDenial(outcome)) {
        send(outcome.lines, (bytes) => outcome.settle(bytes))
        return
      }
      content.close()
      const { status, contentType: type, lines, body, holdMs = 0 } = outcome
      const caching = /^cache-control:/im.test(lines) ? '' : noStore
      reply.hold(holdMs)
      answerSmall(request, reply, first, { status, type, lines: `${lines}${caching}`, body })
    }
    const fare = { request, bytes: decided.bytes, contentType: octets, domain: 'index' as const }
    const outcome = admission.admit(fare)
    return outcome instanceof Promise ? outcome.then(decide) : decide(outcome)
  }

  #caching(how: 'forever' | 'again'): string {
    const whose = this.parts.admission === undefined ? 'public' : 'private'
    return `Cache-Control: ${whose}, ${how === 'forever' ? 'max-age=31536000, immutable' : 'no-cache'}`
  }
}

/** One range is honoured; several are answered with the whole file. */
function singleRange(request: Request, sizeBytes: number): ReturnType<typeof readAsked> {
  const asked = readAsked(request)
  const wanted = parseRange(asked.range, sizeBytes)
  const several = wanted.kind === 'ranges' && wanted.ranges.length > 1
  return several ? { ...asked, range: undefined } : asked
}

export function known(sizeBytes: number, entityTag: string | undefined): Parameters<typeof plan>[1] {
  return { sizeBytes, contentType: octets, entityTag, boundary: () => '' }
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

export function missing({ request, reply, first }: Ask): void {
  answerSmall(request, reply, first, { status: 404, type: jsonType, lines: noStore, body: '{}' })
}

export function wrong({ request, reply, first }: Ask, error: string): void {
  const body = JSON.stringify({ error })
  answerSmall(request, reply, first, { status: 400, type: jsonType, lines: noStore, body })
}

function updating({ request, reply, first }: Ask): void {
  const body = JSON.stringify({ error: 'Index file is being updated' })
  const lines = `${noStore}\r\nRetry-After: 60`
  answerSmall(request, reply, first, { status: 503, type: jsonType, lines, body })
}

export function refused(
  { request, reply, first }: Ask,
  { status, text, lines }: Extract<Plan, { variant: 'refused' }>,
): void {
  const body = JSON.stringify({ error: text })
  answerSmall(request, reply, first, { status, type: jsonType, lines: `${noStore}${lines}`, body })
}
