import { CacheFiller } from '../gateway/cache-filler.js'
import { Delivery } from '../gateway/deliver.js'
import { Entries } from '../gateway/entries.js'
import type { GatewayParts } from '../gateway/gateway-parts.js'
import { createHeadWriter } from '../gateway/head-writer.js'
import { refusesWorker } from '../gateway/isolation.js'
import { Locator } from '../gateway/locator.js'
import { OpenManifests } from '../gateway/open-manifests.js'
import { enter } from '../gateway/steps.js'
import { Touches } from '../gateway/touches.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Described } from '../http/openapi.js'
import { Router } from '../http/router.js'
import { Hosts } from '../names/host.js'
import { answerByRoute } from '../serving/answer-by-route.js'
import { idLead, preflight } from '../serving/cors.js'
import { docsRoutes } from '../serving/docs-routes.js'
import { answerWrongMethod } from '../serving/exchange-answers.js'
import { openExchange } from '../serving/open-exchange.js'
import { origins } from '../serving/origin.js'
import type { Exchange, Family } from '../serving/request-exchange.js'
import { RequestLog } from '../serving/request-log.js'
import type { Route } from '../serving/route.js'
import { SoundFiles } from '../store/sound-files.js'
import { ContentHandler, contentOperations, methodsOf, type Target, targetOf } from './content-handler.js'
import { DigestHandler } from './digest-handler.js'
import { gatewayParameters, gatewayService } from './gateway-parameters.js'
import { HostRules, type Ruled } from './host-rules.js'
import { indexRoutes } from './index-routes.js'
import { ManifestHandler } from './manifest-handler.js'
import { NameHandler } from './name-handler.js'
import { TextHandler } from './text-handler.js'

/** What answers by the host of a request, before its path counts. */
interface ByHost {
  readonly rules: HostRules
  readonly handler: NameHandler
}

/** The handler of all requests of one edge thread. */
export class EdgeHandler {
  readonly #requestLog: RequestLog
  readonly #delivery: Delivery
  readonly #contentHandler: ContentHandler
  readonly #digests: DigestHandler
  readonly #router: Router<Route>
  readonly #hosts: ByHost | undefined
  readonly #touches: Touches
  readonly #locator: Locator
  readonly #openManifests: OpenManifests
  /** Beginnings of paths whose answers are never cached unless they allow it themselves. */
  readonly #uncached: readonly string[]
  readonly #caching: string
  readonly #admission: GatewayParts['admission']
  /** Over TLS. */
  readonly #hidesOperators: boolean
  /** One function for all requests: it reads the host where a page of failure is made. */
  readonly #home: NonNullable<Request['home']>

  constructor(parts: GatewayParts) {
    const { catalog, blobs, transfers, tip, clock, log, options, admission, guard, vocabulary } = parts
    const requestLog = new RequestLog(parts.meters, log, clock, parts.resources)
    const entries = new Entries(catalog, (digest) => blobs.path(digest), tip, options)
    const locator = new Locator(
      entries,
      blobs,
      transfers,
      parts.sound ?? new SoundFiles(),
      log,
      options.checkWaitBytes,
      { keeper: parts.keeper, clock, catalog },
      guard,
    )
    const touches = new Touches(parts.keeper, clock)
    const writer = createHeadWriter(parts)
    const hopsName = `${vocabulary.gateway}Hops`
    const absentName = `${vocabulary.gateway}Negative-Cache`
    const { meters } = parts
    const { forkDepth } = options
    const cacheFiller = new CacheFiller({ catalog, tip, forkDepth, guard, meters, admission, log })
    const own = { requestLog, locator, writer, touches, cacheFiller, hopsName, absentName }
    const { clientOf, finder } = parts
    const given = { transfers, tip, clock, options, admission, guard, finder, clientOf }
    const delivery = new Delivery({ ...own, ...given })
    const { manifestsOpenMax, manifestQuestionsMax } = options
    const openManifests = new OpenManifests(transfers, manifestsOpenMax, manifestQuestionsMax, clock)
    const manifestHandler = new ManifestHandler(
      ...([requestLog, locator, delivery, openManifests] as const),
      options.manifestMaxBytes,
      parts.clientOf,
    )
    this.#openManifests = openManifests
    this.#requestLog = requestLog
    this.#delivery = delivery
    const texts = new TextHandler({ requestLog, locator, admission, guard }, delivery)
    this.#contentHandler = new ContentHandler(requestLog, locator, delivery, manifestHandler, texts)
    this.#digests = new DigestHandler(
      { requestLog, catalog, locator, delivery, guard },
      vocabulary.pathPrefix,
    )
    const { routes = [], offered } = parts
    this.#router = new Router(
      [
        ...routes,
        ...(offered === undefined ? [] : indexRoutes({ ...parts, ...offered, requestLog })),
        ...docsRoutes(() => this.#operations, { ...gatewayService, release: options.release }),
      ],
      gatewayParameters,
    )
    this.#hidesOperators = !options.operatorsOverTls
    this.#touches = touches
    this.#locator = locator
    this.#admission = admission
    this.#hosts = this.#naming(parts)
    this.#home = (request) => this.#hosts?.rules.homeOf(request) ?? { href: '/', hasSearch: true }
    this.#uncached = ['admin', 'rate-limit', 'x402'].map((name) => `${vocabulary.pathPrefix}/${name}`)
    this.#caching = `public, max-age=${options.cache.defaultSeconds}`
  }

  /**
   * Answers. Ends the reply exactly once, now or later; content in memory is out when this returns. Throws on a bug that came
   * after the head: the socket must be closed then.
   */
  handle(request: Request, reply: Reply): void {
    request.home = this.#home
    if (request.method === 'OPTIONS') {
      this.#delayFree(request, reply)
      const exchange = this.#open(request, reply, 'other')
      preflight(request, reply, exchange.lines)
      this.#requestLog.finish(exchange, { status: 204, bytes: 0, outcome: 'whole', reason: 'preflight' })
      return
    }
    const target = targetOf(request.path)
    const ruled = this.#hosts?.rules.rule(request, target)
    if (ruled !== undefined) {
      this.#byHost(request, reply, ruled)
      return
    }
    if (target !== undefined) {
      this.#byTarget(request, reply, target)
      return
    }
    const digest = this.#digests.textOf(request.path)
    if (digest !== undefined) {
      this.#byDigest(request, reply, digest)
      return
    }
    this.#delayFree(request, reply)
    const found = this.#router.find(request.path)
    const isHidden = request.secure === true && found?.isForOperators === true && this.#hidesOperators
    const route = isHidden ? undefined : found
    this.#byRoute(this.#open(request, reply, route?.family ?? 'other'), route)
  }

  /** Reports to the catalog's keeper what was served last. Call it when no exchange is left. */
  close(): void {
    this.#touches.close()
    this.#locator.close()
    this.#openManifests.close()
  }

  /** Everything that is answered by its path. */
  get #operations(): readonly Described[] {
    return [...contentOperations(), ...this.#digests.operations, ...this.#router.operations]
  }

  /** Requests that cost no tokens are limited in number as well. */
  #delayFree(request: Request, reply: Reply): void {
    if (this.#admission !== undefined) reply.delayNext(this.#admission.freeDelayMs(request))
  }

  #naming({ hostNames: naming, vocabulary, guard, options, clientOf }: GatewayParts): ByHost | undefined {
    if (naming === undefined) return undefined
    const { names, hosts, isPrepared } = naming
    const own = { requestLog: this.#requestLog, delivery: this.#delivery, data: this.#contentHandler }
    const hasRoute = (path: string): boolean => {
      const route = this.#router.find(path)
      return route !== undefined && route.yields !== true
    }
    return {
      rules: new HostRules(new Hosts(hosts.rootHosts), hosts, vocabulary.pathPrefix, hasRoute),
      handler: new NameHandler({ ...own, names, hosts, vocabulary, guard, options, isPrepared, clientOf }),
    }
  }

  #open(request: Request, reply: Reply, family: Family): Exchange {
    const exchange = openExchange(this.#requestLog, request, reply, family, idLead)
    enter(exchange, 'route')
    return exchange
  }

  #byTarget(request: Request, reply: Reply, target: Target): void {
    const exchange = this.#open(request, reply, target.kind === 'raw' ? 'raw' : 'data')
    exchange.origin = this.#hosts?.rules.originOf(request, target.id) ?? origins.shared
    if (refusesWorker(this.#requestLog, exchange)) return
    this.#reading(exchange, methodsOf(target.kind), () => this.#contentHandler.handle(exchange, target))
  }

  #byDigest(request: Request, reply: Reply, digest: string): void {
    const { rules } = this.#hosts ?? {}
    const id = rules === undefined ? undefined : this.#digests.holderOf(digest)
    const ruled = rules?.shown(request, id)
    if (ruled !== undefined) {
      this.#byHost(request, reply, ruled)
      return
    }
    const exchange = this.#open(request, reply, 'raw')
    exchange.origin = rules?.originOf(request, id) ?? origins.shared
    if (refusesWorker(this.#requestLog, exchange)) return
    this.#reading(exchange, methodsOf('raw'), () => this.#digests.handle(exchange, digest))
  }

  #byHost(request: Request, reply: Reply, ruled: Ruled): void {
    const exchange = this.#open(request, reply, 'data')
    const isApex = ruled.kind === 'apex-id' || (ruled.kind === 'name' && ruled.isApex)
    const route = isApex ? this.#router.find(request.path) : undefined
    if (route?.yields === true)
      exchange.onUnknown = () => {
        enter(exchange, 'route')
        this.#byRoute(exchange, route)
      }
    this.#reading(exchange, methodsOf('data'), () => this.#hosts?.handler.handle(exchange, ruled))
  }

  #reading(exchange: Exchange, methods: readonly string[], act: () => void): void {
    if (!methods.includes(exchange.method)) {
      answerWrongMethod(this.#requestLog, exchange, methods)
      return
    }
    try {
      act()
    } catch (error) {
      const over = exchange.answered
      this.#delivery.failed(exchange, error)
      // A part of the answer may have been sent: the server closes the socket when the handler throws.
      if (over) throw error
    }
  }

  #byRoute(exchange: Exchange, route: Route | undefined): void {
    answerByRoute(this.#requestLog, this.#router, exchange, route, this.#cachingOf(exchange))
  }

  #cachingOf({ method, path }: Exchange): string {
    if (method !== 'GET' && method !== 'HEAD') return 'no-store'
    const lower = path.toLowerCase()
    return this.#uncached.some((start) => lower.startsWith(start)) ? 'no-store' : this.#caching
  }
}
