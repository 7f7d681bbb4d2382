import { entityTag } from '../attest/trust-headers.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Head, Sent } from '../http/exchange.js'
import type { Opened } from '../source/opener.js'
import type { Window } from '../source/protocol.js'
import type { Content } from '../store/content.js'
import { soonStale } from './cache-control.js'
import type { DeliveryParts, Intercept } from './delivery-parts.js'
import { type Entry, isStable, newBoundary } from './entry.js'
import { answerGone, answerRefusal, answerText, type Ending, type Flow } from './flow.js'
import { typeOf } from './head.js'
import { readHints, readProvenance } from './hints.js'
import type { Located } from './locate.js'
import { isHashed, isInside } from './opened.js'
import { type Known, type Plan, plan, readAsked, unconditional } from './plan.js'

type Planned = Exclude<Plan, { variant: 'refused' }>

/** The steps of one answer with content: plan, admit, attest, stream, settle. */
export class Delivery {
  readonly #notFound: string
  readonly #noHops: string

  constructor(private readonly parts: DeliveryParts) {
    this.#notFound = soonStale(parts.options.cache)
    this.#noHops = `\r\n${parts.hopsName}: 0`
  }

  /** Answers with the content of `id`, found so far. What is in memory goes out before this returns. */
  serve(flow: Flow, id: Id, found: Located, intercept?: Intercept): void {
    if (this.turnsAway(flow, id, found)) return
    if (found.at === 'store') this.#fromStore(flow, found)
    else if (found.at !== 'catalog' || !this.#fromCatalog(flow, found.entry)) {
      this.run(flow, this.#later(flow, id, found, intercept))
    }
  }

  /** Must not be served: answered so, and closed. */
  turnsAway(flow: Flow, id: Id, found: Located): boolean {
    const { guard } = this.parts
    if (guard === undefined) return false
    if (found.at === 'nowhere' ? !guard.blocksId(id) : !guard.blocks(found.entry)) return false
    if (found.at === 'store') found.content.close()
    answerText(this.parts.ledger, flow, guard.answer(`ID: ${id}`), { fault: 'client' })
    return true
  }

  /** Answers with a refusal. */
  refuse(flow: Flow, refusal: Refusal): void {
    answerRefusal(this.parts.ledger, flow, refusal, this.#notFound)
  }

  /** Answers 404 for what may come to be later. */
  unknown(flow: Flow, message: string): void {
    this.refuse(flow, { refused: 'unknown', fault: 'client', message })
  }

  /** Lets the rest of a flow run by itself. A bug in it is logged and answered 500, where there is still somebody to answer. */
  run(flow: Flow, rest: Promise<void>): void {
    void rest.catch((error: unknown) => this.failed(flow, error))
  }

  /** A flow met a bug: never the client's fault, and never silent. */
  failed(flow: Flow, error: unknown): void {
    const text = 'Internal server error'
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const { ledger } = this.parts
    if (!flow.answered) answerText(ledger, flow, { status: 500, text }, { fault: 'self', reason })
    else if (!flow.settled) {
      ledger.settle(flow, { status: 500, bytes: 0, outcome: 'broken', fault: 'self', reason })
    }
  }

  /** Has a blob checked, or brings the content from a source. */
  async #later(flow: Flow, id: Id, found: Located, intercept: Intercept | undefined): Promise<void> {
    let now = found
    // Twice: a false blob may be followed by another that was kept meanwhile.
    for (let tries = 0; now.at === 'unchecked' && tries < 2; tries += 1) {
      await this.parts.locator.check(now.entry)
      if (flow.reply.aborted) return answerGone(this.parts.ledger, flow)
      now = this.parts.locator.locate(id, false)
    }
    if (now !== found && this.turnsAway(flow, id, now)) return
    if (now.at === 'store') return this.#fromStore(flow, now)
    if (now.at === 'catalog' && this.#fromCatalog(flow, now.entry)) return
    const entry = now.at === 'nowhere' ? undefined : now.entry
    const window = entry === undefined ? undefined : this.#windowOf(flow, entry)
    let opened = await this.bring(flow, id, window)
    if (opened === undefined || intercept?.(opened)) return
    if (this.#fromSource(flow, opened, entry)) return
    // The source knows another size than the catalog did: ask for everything, and plan again.
    opened = await this.bring(flow, id, undefined)
    if (opened !== undefined && !this.#fromSource(flow, opened, entry)) {
      this.refuse(flow, {
        refused: 'upstream',
        fault: 'upstream',
        message: 'a source opened less than the content',
      })
    }
  }

  /** Opens `id` at a source. Undefined: the flow was answered, because it was refused or the client left. */
  async bring(flow: Flow, id: Id, window: Window | undefined): Promise<Opened | undefined> {
    const { source, ledger, options, guard } = this.parts
    const hints = readHints(flow.request)
    const provenance = readProvenance(flow.request, options)
    const opened = await source.open({ id, hints, provenance, ...(window === undefined ? {} : { window }) })
    if (flow.reply.aborted) {
      if (!isRefusal(opened)) opened.content.close()
      answerGone(ledger, flow)
      return undefined
    }
    if (isRefusal(opened)) this.refuse(flow, opened)
    else if (guard?.blocksContent({ ...opened.attributes, id }) !== true) return opened
    else {
      opened.content.close()
      answerText(ledger, flow, guard.answer(`ID: ${id}`), { fault: 'client' })
    }
    return undefined
  }

  #fromStore(flow: Flow, found: Extract<Located, { at: 'store' }>): void {
    const { entry, content, sound } = found
    const { ledger, touches } = this.parts
    const planned = this.#plan(flow, entry)
    if (planned === undefined || !this.#admit(flow, planned)) {
      content.close()
      return
    }
    touches.touch(entry)
    ledger.cached(true)
    const head = this.#headOf(flow, entry, planned, true, sound)
    const watched = this.parts.guard?.watched(content, entry.attributes, planned.bytes) ?? content
    this.#send(flow, head, planned, watched, { reason: 'hit', source: 'cache' })
  }

  /** Answers what needs no byte of the content, where size, type and digest are known. False: it does need some. */
  #fromCatalog(flow: Flow, entry: Entry): boolean {
    const { digest, contentType, header } = entry.attributes
    if (digest === undefined || (contentType === undefined && header === undefined)) return false
    const decided = decide(flow, knownOf(flow, entry))
    if (decided.variant === 'refused') this.#refusePlan(flow, decided)
    else if (decided.bytes > 0) return false
    else {
      const head = this.#headOf(flow, entry, decided, false, false)
      this.#send(flow, head, decided, undefined, { reason: 'known', source: 'catalog' })
    }
    return true
  }

  /** False: what was opened does not hold what the plan needs. It is closed then, and the flow still open. */
  #fromSource(flow: Flow, opened: Opened, entry: Entry | undefined): boolean {
    const { ledger, writer, tip, options, clock } = this.parts
    // What the index knew of content of another size was wrong.
    const before = entry?.attributes.size === opened.attributes.size ? entry.attributes : undefined
    const attributes: Attributes = { ...before, ...opened.attributes }
    const hashed = isHashed(opened)
    // While bytes are on their way only a proven digest counts: the fetcher breaks off whatever differs from it.
    const digest = hashed || before?.verified === true ? attributes.digest : undefined
    const boundary = newBoundary()
    const { naming } = flow
    const decided = decide(flow, {
      sizeBytes: attributes.size,
      contentType: typeOf(attributes),
      entityTag: digest === undefined ? undefined : entityTag(digest, naming?.resolvedId),
      boundary: () => boundary,
    })
    if (decided.variant === 'refused') {
      opened.content.close()
      this.#refusePlan(flow, decided)
      return true
    }
    if (!decided.pieces.every((piece) => isInside(piece, opened))) {
      opened.content.close()
      return false
    }
    if (!this.#admit(flow, decided)) {
      opened.content.close()
      return true
    }
    ledger.cached(false)
    const stable = isStable(attributes.height, tip, options.forkDepth)
    const { trusted } = opened
    const said = { attributes, cached: false, verified: false, trusted, stable, digest, hashed }
    const prepared = writer.prepare({ ...said, fallback: flow.fallback, naming }, decided.variant, boundary)
    const seconds = Math.floor(clock.now() / 1000)
    const block = writer.signed(prepared, decided.status, flow.method, flow.path, seconds)
    const hops = `\r\n${this.parts.hopsName}: ${opened.hops ?? flow.hops}`
    const head = { status: decided.status, block: `${flow.lines}\r\n${block}${decided.lines}${hops}` }
    const content = this.parts.guard?.watched(opened.content, attributes, decided.bytes) ?? opened.content
    this.#send(flow, head, decided, content, { reason: 'miss', source: opened.source })
    return true
  }

  /** The window around all that is asked for, where it is less than everything. */
  #windowOf(flow: Flow, entry: Entry): Window | undefined {
    const decided = decide(flow, knownOf(flow, entry))
    if (decided.variant !== 'part' && decided.variant !== 'parts') return undefined
    const windows = decided.pieces.filter((piece) => 'start' in piece)
    if (windows.length === 0) return undefined
    const start = Math.min(...windows.map((piece) => piece.start))
    return { start, end: Math.max(...windows.map((piece) => piece.end)) - 1 }
  }

  #plan(flow: Flow, entry: Entry): Planned | undefined {
    const decided = decide(flow, knownOf(flow, entry))
    if (decided.variant !== 'refused') return decided
    this.#refusePlan(flow, decided)
    return undefined
  }

  #refusePlan(flow: Flow, { status, text, lines }: Extract<Plan, { variant: 'refused' }>): void {
    answerText(this.parts.ledger, flow, { status, text, lines }, { fault: 'client' })
  }

  #admit(flow: Flow, { bytes }: Planned): boolean {
    const refusal = this.parts.admission?.take(flow.request, bytes)
    if (refusal === undefined) return true
    this.refuse(flow, refusal)
    return false
  }

  #headOf(
    flow: Flow,
    entry: Entry,
    { variant, status, lines }: Planned,
    cached: boolean,
    sound: boolean,
  ): Head {
    const seconds = Math.floor(this.parts.clock.now() / 1000)
    const answer = { variant, cached, sound, fallback: flow.fallback, naming: flow.naming }
    const frame = entry.frame(answer, flow.method, flow.path, seconds, this.parts.writer)
    const hops = flow.hops === 0 ? this.#noHops : `\r\n${this.parts.hopsName}: ${flow.hops}`
    return { status, frame, id: flow.requestId, lines: lines + hops }
  }

  /** Sends what was planned, closes the content, and settles when the last byte is out. */
  #send(
    flow: Flow,
    head: Head,
    planned: Planned,
    content: Content | undefined,
    why: Pick<Ending, 'reason' | 'source'>,
  ): void {
    const { reply } = flow
    const { pieces, bytes, contentLength } = planned
    flow.answered = true
    if (content === undefined || bytes === 0) {
      content?.close()
      if (flow.method === 'HEAD' || planned.variant === 'unchanged') reply.endEmpty(head, contentLength)
      else reply.end(head)
      this.#settle(flow, planned, { outcome: 'whole', bytes: 0 }, why)
      return
    }
    // Where the bytes are in memory and the socket takes them, all is over on return.
    const sent = reply.stream(head, pieces, content)
    if (!(sent instanceof Promise)) {
      this.#settle(flow, planned, sent, why)
      return
    }
    void sent.then((ended) => this.#settle(flow, planned, ended, why))
  }

  #settle(flow: Flow, planned: Planned, sent: Sent, why: Pick<Ending, 'reason' | 'source'>): void {
    const { admission, ledger } = this.parts
    if (sent.bytes < planned.bytes) admission?.refund(flow.request, planned.bytes - sent.bytes)
    const { status } = planned
    const { bytes, outcome } = sent
    ledger.settle(flow, { status, bytes, outcome, reason: why.reason, source: why.source ?? '' })
  }
}

/** What is known of an entry's content, as the answer to this flow would show it. */
function knownOf({ naming }: Flow, entry: Entry): Known {
  const { attributes, contentType, boundary } = entry
  return { sizeBytes: attributes.size, contentType, entityTag: entry.tagFor(naming), boundary }
}

/** The plan of an answer. A page for names that nobody knows has a status of its own, and is always sent whole. */
function decide({ request, naming }: Flow, known: Known): Plan {
  const status = naming?.status
  if (status === undefined) return plan(readAsked(request), known)
  const decided = plan(unconditional(request), known)
  return decided.variant === 'refused' ? decided : { ...decided, status }
}
