import { type Denial, type Grant, isDenial } from '../admission/admission-port.js'
import { entityTag } from '../attest/trust-headers.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import {
  answerFailed,
  answerGone,
  answerRefusal,
  answerText,
  closeOpened,
} from '../serving/exchange-answers.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'
import type { Window } from '../source/source-messages.js'
import { admitExchange, answerDenied, takeFirstToken } from './admit.js'
import { AnswerHeads, type KnownOpened } from './answer-heads.js'
import { soonStale } from './cache-control.js'
import type { DeliveryParts, Intercept } from './delivery-parts.js'
import { type Entry, lazyBoundary } from './entry.js'
import { openGuided, openWindow } from './guided.js'
import { typeOf } from './head-writer.js'
import { absentCaching, readHints, readProvenance } from './hints.js'
import type { Located } from './locator.js'
import { isHashed, isInside } from './opened-pieces.js'
import { type Plan, type Planned, planExchange, planFor } from './plan.js'
import { rangeWindow } from './range-window.js'
import { send } from './send.js'
import { enter } from './steps.js'

/** Runs the steps of one answer with content, from `guard` to `send`: `steps.ts` has them in a table. */
export class Delivery {
  readonly #notFound: string
  readonly #heads: AnswerHeads

  constructor(private readonly parts: DeliveryParts) {
    this.#notFound = soonStale(parts.options.cache)
    this.#heads = new AnswerHeads(parts)
  }

  /** Answers with the content of `id`, located before. What is in memory is sent before this returns. */
  serve(exchange: Exchange, id: Id, found: Located, intercept?: Intercept): void {
    if (this.refusesBlocked(exchange, id, found)) return
    if (found.at === 'store') this.#fromStore(exchange, found)
    else if (found.at !== 'catalog' || !this.#fromCatalog(exchange, found.entry)) {
      this.run(exchange, this.#checkOrBring(exchange, id, found, intercept))
    }
  }

  /** Step `guard`. True where the content is blocked: it was answered with 451, and what was open for it is closed. */
  refusesBlocked(exchange: Exchange, id: Id, found: Located): boolean {
    const { guard } = this.parts
    enter(exchange, 'guard')
    if (guard === undefined) return false
    if (found.at === 'nowhere' ? !guard.blocksId(id) : !guard.blocks(found.entry)) return false
    closeOpened(exchange)
    answerText(this.parts.requestLog, exchange, guard.answer(`ID: ${id}`), { fault: 'client' })
    return true
  }

  /** Records that the answer depends on a manifest, too: it counts as used, and the response cache checks its generation. */
  dependsOnManifest(exchange: Exchange, { entry, content }: Extract<Located, { at: 'store' }>): void {
    const { touches, cacheFiller } = this.parts
    touches.touch(entry, content)
    cacheFiller.dependOn(exchange, entry)
  }

  /** Answers with a refusal. */
  refuse(exchange: Exchange, refusal: Refusal): void {
    const memory = refusal.remembered === true ? `\r\n${this.parts.absentName}: hit` : ''
    const caching = absentCaching(exchange.request, this.parts.options, this.#notFound)
    answerRefusal(this.parts.requestLog, exchange, refusal, caching + memory)
  }

  /** Answers 404 that caches keep for a short time only, because the content may be published later. */
  unknown(exchange: Exchange, message: string): void {
    if (exchange.onUnknown !== undefined) exchange.onUnknown()
    else this.refuse(exchange, { refused: 'unknown', fault: 'client', message })
  }

  /**
   * Runs an exchange without a caller that waits. A bug in it is logged, and answered 500 while the client is there.
   */
  run(exchange: Exchange, work: Promise<void>): void {
    void work.catch((error: unknown) => this.failed(exchange, error))
  }

  /** Answers 500 after a bug, and logs it. */
  failed(exchange: Exchange, error: unknown): void {
    answerFailed(this.parts.requestLog, exchange, error)
  }

  /** Steps `check` and `locate`, once more. Undefined: the client left meanwhile, and the exchange is finished. */
  async checked(exchange: Exchange, id: Id, entry: Entry): Promise<Located | undefined> {
    const { locator, requestLog } = this.parts
    enter(exchange, 'check')
    await locator.check(entry)
    if (!exchange.reply.aborted) return locator.locate(exchange, id, 'take')
    answerGone(requestLog, exchange)
    return undefined
  }

  /** Has a blob checked, or brings the content from a source. */
  async #checkOrBring(
    exchange: Exchange,
    id: Id,
    found: Located,
    intercept: Intercept | undefined,
  ): Promise<void> {
    let now = found
    // Two tries: after a false blob was dropped, a correct one may have been stored meanwhile.
    for (let tries = 0; now.at === 'unchecked' && tries < 2; tries += 1) {
      const checked = await this.checked(exchange, id, now.entry)
      if (checked === undefined) return
      now = checked
    }
    if (now !== found && this.refusesBlocked(exchange, id, now)) return
    if (now.at === 'store') return this.#fromStore(exchange, now)
    if (now.at === 'catalog' && this.#fromCatalog(exchange, now.entry)) return
    const entry = now.at === 'nowhere' ? undefined : now.entry
    const window = entry === undefined ? this.#rangeWindow(exchange) : this.#windowOf(exchange, entry)
    const absentAt = now.at === 'nowhere' ? now.absentAt : undefined
    let opened = await this.bring(exchange, id, window, entry, absentAt)
    if (opened === undefined || intercept?.(opened)) return
    if (this.#fromSource(exchange, opened, entry)) return
    // The size at the source differs from that in the catalog: open the whole content, and plan again.
    opened = await this.bring(exchange, id, undefined, entry)
    if (opened !== undefined && !this.#fromSource(exchange, opened, entry)) {
      this.refuse(exchange, {
        refused: 'upstream',
        fault: 'upstream',
        message: 'a source opened less than the content',
      })
    }
  }

  /**
   * Opens `id` at a source. Undefined: the exchange was answered, because it was refused or the client left. `absentAt`: the
   * generation at which the catalog knew nothing of the id.
   */
  async bring(
    exchange: Exchange,
    id: Id,
    window: Window | undefined,
    entry?: Entry,
    absentAt?: number,
  ): Promise<OpenedContent | undefined> {
    const { transfers, requestLog, options, guard, admission, finder, clientOf } = this.parts
    enter(exchange, 'bring')
    if (!(await takeFirstToken(admission, requestLog, exchange))) return undefined
    const provenance = readProvenance(exchange.request, options)
    const named = exchange.naming !== undefined
    const client = clientOf(exchange.request)
    // Bands are searched only where the catalog has no place.
    const opened = await openGuided(
      id,
      readHints(exchange.request),
      entry?.attributes.place === undefined ? finder : undefined,
      client,
      (hints) => {
        const usual = { id, hints, provenance, named, client }
        const wanted = absentAt === undefined ? usual : { ...usual, absentAt }
        return window === undefined ? transfers.open(wanted) : openWindow(transfers, wanted, window)
      },
      () => exchange.reply.aborted,
    )
    if (exchange.reply.aborted) {
      if (!isRefusal(opened)) opened.content.close()
      answerGone(requestLog, exchange)
      return undefined
    }
    const isBlocked = isRefusal(opened)
      ? opened.refused === 'blocked'
      : guard?.blocksContent({ ...opened.attributes, id }) === true
    if (!isRefusal(opened)) {
      if (!isBlocked) {
        exchange.opened = opened.content
        return opened
      }
      opened.content.close()
    }
    if (isBlocked && guard !== undefined) {
      const caching = absentCaching(exchange.request, options, this.#notFound)
      answerText(requestLog, exchange, guard.answer(`ID: ${id}`, caching), { fault: 'client' })
    } else if (isRefusal(opened)) this.refuse(exchange, opened)
    return undefined
  }

  #fromStore(exchange: Exchange, found: Extract<Located, { at: 'store' }>): void {
    const { entry } = found
    const planned = planExchange(exchange, entry.representationFor(exchange.naming))
    if (planned.variant === 'refused') {
      closeOpened(exchange)
      this.#refusePlan(exchange, planned)
      return
    }
    const outcome = admitExchange(this.parts.admission, exchange, planned.bytes, entry.contentType)
    // As `#whenJudged`, without a closure where the outcome is no promise: this runs for every request.
    if (!(outcome instanceof Promise)) this.#sendStored(exchange, found, planned, outcome)
    else
      this.run(
        exchange,
        outcome.then((later) => this.#sendStored(exchange, found, planned, later)),
      )
  }

  #sendStored(
    exchange: Exchange,
    found: Extract<Located, { at: 'store' }>,
    planned: Planned,
    outcome: Grant | Denial,
  ): void {
    const grant = this.#granted(exchange, outcome)
    if (grant === undefined) return
    const { requestLog, touches, guard } = this.parts
    const { entry, content } = found
    touches.touch(entry, content)
    requestLog.cached(true)
    const head = this.#heads.ofEntry(exchange, entry, planned, grant, found)
    const watched = guard?.watched(content, entry.attributes, planned.bytes) ?? content
    send(this.parts.requestLog, exchange, head, planned, watched, grant, { reason: 'hit', source: 'cache' })
  }

  /** Answers what needs no byte of the content, where size, type and digest are known. False: it does need some. */
  #fromCatalog(exchange: Exchange, entry: Entry): boolean {
    const { digest, contentType, header } = entry.attributes
    if (digest === undefined || (contentType === undefined && header === undefined)) return false
    const planned = planExchange(exchange, entry.representationFor(exchange.naming))
    if (planned.variant === 'refused') this.#refusePlan(exchange, planned)
    else if (planned.bytes > 0) return false
    else {
      const sendKnown = (outcome: Grant | Denial): void => {
        const grant = this.#granted(exchange, outcome)
        if (grant === undefined) return
        const head = this.#heads.ofEntry(exchange, entry, planned, grant)
        send(this.parts.requestLog, exchange, head, planned, undefined, grant, {
          reason: 'known',
          source: 'catalog',
        })
      }
      this.#whenJudged(
        exchange,
        admitExchange(this.parts.admission, exchange, 0, entry.contentType),
        sendKnown,
      )
    }
    return true
  }

  /** False: what was opened does not hold what the plan needs. It is closed then, and the exchange still open. */
  #fromSource(exchange: Exchange, opened: OpenedContent, entry: Entry | undefined): boolean {
    // The size differs, so the entry of the index is not about this content.
    const before = entry?.attributes.size === opened.attributes.size ? entry.attributes : undefined
    const attributes: Attributes =
      before === undefined ? opened.attributes : { ...before, ...opened.attributes }
    const hashed = isHashed(opened)
    // While bytes still arrive only a verified digest is stated: the fetcher aborts transfers that differ from it.
    const digest = hashed || before?.verified === true ? attributes.digest : undefined
    const boundary = lazyBoundary()
    const { naming } = exchange
    const planned = planExchange(exchange, {
      sizeBytes: attributes.size,
      contentType: typeOf(attributes),
      entityTag: digest === undefined ? undefined : entityTag(digest, naming?.resolvedId),
      boundary,
    })
    if (planned.variant === 'refused') {
      closeOpened(exchange)
      this.#refusePlan(exchange, planned)
      return true
    }
    if (!planned.pieces.every((piece) => isInside(piece, opened))) {
      closeOpened(exchange)
      return false
    }
    const goOn = (outcome: Grant | Denial): void => {
      const grant = this.#granted(exchange, outcome)
      if (grant !== undefined)
        this.#sendOpened(exchange, opened, planned, grant, { attributes, digest, hashed, boundary })
    }
    this.#whenJudged(
      exchange,
      admitExchange(this.parts.admission, exchange, planned.bytes, typeOf(attributes)),
      goOn,
    )
    return true
  }

  #sendOpened(
    exchange: Exchange,
    opened: OpenedContent,
    planned: Planned,
    grant: Grant,
    known: KnownOpened,
  ): void {
    const { requestLog, guard } = this.parts
    requestLog.cached(false)
    const head = this.#heads.ofOpened(exchange, opened, planned, grant, known)
    const content = guard?.watched(opened.content, known.attributes, planned.bytes) ?? opened.content
    send(requestLog, exchange, head, planned, content, grant, { reason: 'miss', source: opened.source })
  }

  /** The window of content of which nothing is known. */
  #rangeWindow({ request, naming }: Exchange): Window | undefined {
    return naming?.status === undefined ? rangeWindow(request) : undefined
  }

  /** The smallest window that holds all requested ranges; undefined where it is the whole content. */
  #windowOf(exchange: Exchange, entry: Entry): Window | undefined {
    const planned = planFor(exchange, entry.representationFor(exchange.naming))
    if (planned.variant !== 'part' && planned.variant !== 'parts') return undefined
    const windows = planned.pieces.filter((piece) => 'start' in piece)
    if (windows.length === 0) return undefined
    const start = Math.min(...windows.map((piece) => piece.start))
    return { start, end: Math.max(...windows.map((piece) => piece.end)) - 1 }
  }

  #refusePlan(exchange: Exchange, { status, text, lines }: Extract<Plan, { variant: 'refused' }>): void {
    answerText(this.parts.requestLog, exchange, { status, text, lines }, { fault: 'client' })
  }

  /** Goes on when it is known whether the answer may be sent: at once where the buckets are in memory. */
  #whenJudged(
    exchange: Exchange,
    outcome: ReturnType<typeof admitExchange>,
    goOn: (outcome: Grant | Denial) => void,
  ): void {
    if (outcome instanceof Promise) this.run(exchange, outcome.then(goOn))
    else goOn(outcome)
  }

  /** Undefined: the exchange was answered, because it was denied or the client left meanwhile; the content is closed. */
  #granted(exchange: Exchange, outcome: Grant | Denial): Grant | undefined {
    const denied = isDenial(outcome)
    if (!denied && !exchange.reply.aborted) return outcome
    closeOpened(exchange)
    if (denied) answerDenied(this.parts.requestLog, exchange, outcome)
    else {
      outcome.returnUnsent(0)
      answerGone(this.parts.requestLog, exchange)
    }
    return undefined
  }
}
