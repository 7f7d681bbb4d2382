import type { Vocabulary } from '../attest/vocabulary.js'
import { soonStale } from '../gateway/cache-control.js'
import type { Delivery } from '../gateway/deliver.js'
import type { HostOptions } from '../gateway/gateway-parts.js'
import type { GatewayOptions } from '../gateway/gateway-rules.js'
import type { Guard } from '../gateway/guard.js'
import { absentCaching, readTrail } from '../gateway/hints.js'
import { enter } from '../gateway/steps.js'
import { textType } from '../http/small-answer.js'
import { isResolved, type Name, type Names, type Outcome, type Resolution } from '../names/names-port.js'
import { answerExchange, answerGone, answerText } from '../serving/exchange-answers.js'
import type { ClientOf } from '../serving/in-slot.js'
import { type Naming, namingOf, unnamed } from '../serving/naming.js'
import { origins } from '../serving/origin.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'
import type { ContentHandler } from './content-handler.js'
import type { Ruled } from './host-rules.js'

export interface NameRouteParts {
  readonly names: Names
  readonly guard: Guard | undefined
  readonly requestLog: RequestLog
  readonly delivery: Delivery
  readonly data: ContentHandler
  readonly vocabulary: Vocabulary
  readonly hosts: HostOptions
  readonly options: GatewayOptions
  readonly isPrepared: ((name: Name) => boolean) | undefined
  readonly clientOf: ClientOf
}

/** Answers what the host of a request decided: redirects, and everything below a name. */
export class NameHandler {
  /** Keyed by the resolution object: prepared heads are valid exactly as long as that resolution is. */
  readonly #namings = new WeakMap<Resolution, Naming>()
  readonly #apexNaming: Naming
  /** The naming of the page for unknown names, and of what it loads; keyed by their Cache-Control. */
  readonly #strangers: ReadonlyMap<string, { readonly root: Naming; readonly part: Naming }>
  readonly #soonStale: string

  constructor(private readonly parts: NameRouteParts) {
    const { cache } = parts.options
    this.#apexNaming = unnamed({ capSeconds: parts.hosts.apexMaxSeconds })
    this.#soonStale = soonStale(cache)
    this.#strangers = new Map(
      [this.#soonStale, 'no-store'].map((one) => [one, { root: unnamed(one, 404), part: unnamed(one) }]),
    )
  }

  handle(exchange: Exchange, ruled: Ruled): void {
    enter(exchange, 'name')
    const { requestLog, hosts } = this.parts
    if (ruled.kind !== 'apex-id') exchange.cacheConditions = undefined
    if (ruled.kind === 'redirect') {
      exchange.origin = ruled.origin
      const lines = `\r\nLocation: ${ruled.location}`
      answerText(
        requestLog,
        exchange,
        { status: 302, text: 'Found', lines },
        { reason: 'to the host of the id' },
      )
    } else if (ruled.kind === 'apex-id') {
      exchange.naming = this.#apexNaming
      if (hosts.apexId !== undefined) this.parts.data.below(exchange, hosts.apexId, exchange.path.slice(1))
    } else if (ruled.name === 'malformed') {
      this.#stranger(exchange, undefined, false)
    } else this.#named(exchange, ruled.name, ruled.isApex)
  }

  /** Blocked names are not resolved: they stay blocked whatever they point to. */
  #named(exchange: Exchange, name: Name, isApex: boolean): void {
    const { guard, names, delivery, requestLog } = this.parts
    const clearAt = guard?.version ?? 0
    if (guard?.blocksName(name.full) === true) {
      answerText(requestLog, exchange, guard.answer(`name: ${name.full}`), { fault: 'client' })
      return
    }
    const known = names.known(name)
    if (known !== undefined) {
      if (isResolved(known)) exchange.cacheConditions = this.#conditionsOf(exchange, name, clearAt)
      this.#answer(exchange, name, isApex, known)
    } else
      delivery.run(
        exchange,
        this.#later(exchange, name, (outcome) => this.#answer(exchange, name, isApex, outcome)),
      )
  }

  /** That the name still means the same, and is not blocked: as of `clearAt` it is not. */
  #conditionsOf({ reply }: Exchange, name: Name, clearAt: number): Exchange['cacheConditions'] {
    const { names, guard } = this.parts
    const means = reply.responseCache === undefined ? undefined : names.watch?.(name)
    if (means === undefined || guard === undefined) return means
    const { versionCell } = guard
    return versionCell === undefined ? undefined : [...means, [versionCell, clearAt, clearAt]]
  }

  async #later(exchange: Exchange, name: Name, act: (outcome: Outcome) => void): Promise<void> {
    const { names, requestLog, options, clientOf } = this.parts
    const { request } = exchange
    const outcome = await names.resolve(name, readTrail(request, options), clientOf(request))
    if (exchange.reply.aborted) answerGone(requestLog, exchange)
    else act(outcome)
  }

  #answer(exchange: Exchange, name: Name, isApex: boolean, outcome: Outcome): void {
    if (isResolved(outcome)) this.#resolved(exchange, outcome)
    else if (outcome === 'blocked') this.#blocked(exchange, name)
    else if (outcome !== 'absent') this.parts.delivery.refuse(exchange, outcome)
    else if (this.parts.isPrepared?.(name) === true) this.#prepared(exchange)
    else this.#stranger(exchange, name, isApex)
  }

  #resolved(exchange: Exchange, resolution: Resolution): void {
    const { requestLog, vocabulary, hosts, data } = this.parts
    let naming = this.#namings.get(resolution)
    if (naming === undefined) {
      naming = namingOf(resolution, vocabulary)
      this.#namings.set(resolution, naming)
    }
    exchange.naming = naming
    const { undernameLimit, recordIndex } = resolution
    const isOver = undernameLimit !== undefined && recordIndex !== undefined && recordIndex > undernameLimit
    if (isOver && hosts.enforceUndernameLimit) {
      const lines = '\r\nCache-Control: no-store'
      answerText(requestLog, exchange, { status: 402, text: overLimit, lines }, { fault: 'client' })
      return
    }
    data.below(exchange, resolution.id, exchange.path.slice(1))
  }

  /** A program that starts has not set the name yet. Browsers repeat the request by themselves (HTML, "Refresh"). */
  #prepared(exchange: Exchange): void {
    const lines = '\r\nCache-Control: no-store\r\nRetry-After: 2\r\nRefresh: 2'
    const body = 'This site is being put onto the chain of this machine'
    const answer = { status: 503, type: textType, lines, body, code: 'SLC_STARTING' } as const
    answerExchange(this.parts.requestLog, exchange, answer, {
      fault: 'self',
      reason: 'the site is being prepared',
    })
  }

  #blocked(exchange: Exchange, name: Name): void {
    const { requestLog, options } = this.parts
    const text = `Requested content blocked by this node's content policy. Blocked name: ${name.full}`
    const lines = `\r\nCache-Control: public, max-age=${options.cache.blockedSeconds}, immutable`
    answerText(
      requestLog,
      exchange,
      { status: 451, text, lines },
      { fault: 'client', reason: 'the name is blocked' },
    )
  }

  /** The name is unknown: answers with the operator's page for that, and with what the page loads. */
  #stranger(exchange: Exchange, name: Name | undefined, isApex: boolean): void {
    const { requestLog, delivery, data, hosts, names, guard } = this.parts
    const isRoot = exchange.path === '/'
    if (!isRoot) exchange.origin = origins.referred
    if (!isRoot && !comesFromHere(exchange)) {
      answerText(
        requestLog,
        exchange,
        { status: 302, text: 'Found', lines: '\r\nLocation: /' },
        { reason: 'no such name' },
      )
      return
    }
    const nothing = (): void => delivery.unknown(exchange, 'no such name')
    if (isApex || (name !== undefined && name.record !== '@')) {
      nothing()
      return
    }
    const page = this.#strangers.get(absentCaching(exchange.request, this.parts.options, this.#soonStale))
    exchange.naming = isRoot ? page?.root : page?.part
    const { notFoundId, notFoundName } = hosts
    if (notFoundId !== undefined) {
      data.below(exchange, notFoundId, exchange.path.slice(1))
      return
    }
    const { full } = notFoundName ?? {}
    if (notFoundName === undefined || full === name?.full || guard?.blocksName(notFoundName.full) === true) {
      nothing()
      return
    }
    // Without name headers, so that clients do not take the page for what the name means.
    const show = (outcome: Outcome): void =>
      isResolved(outcome) ? data.below(exchange, outcome.id, exchange.path.slice(1)) : nothing()
    const known = names.known(notFoundName)
    if (known !== undefined) show(known)
    else delivery.run(exchange, this.#later(exchange, notFoundName, show))
  }
}

const overLimit = 'ArNS undername limit exceeded. Purchase additional undernames to continue.'

/** True where the request comes from a page of this very host. */
function comesFromHere({ request }: Exchange): boolean {
  const referer = request.header('referer')
  if (referer === undefined || !URL.canParse(referer)) return false
  return new URL(referer).host === request.header('host')?.toLowerCase()
}
