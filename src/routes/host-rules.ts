import type { Id } from '../format/id.js'
import type { HostOptions } from '../gateway/gateway-parts.js'
import { isNavigation } from '../gateway/isolation.js'
import type { Home, Request } from '../http/exchange.js'
import type { HostPlace, Hosts } from '../names/host.js'
import type { Name } from '../names/names-port.js'
import { originOf, sandboxLabel, sandboxUrl } from '../names/sandbox-host.js'
import { type Origin, origins } from '../serving/origin.js'
import type { Target } from './content-handler.js'

/** What the host of a request decides. Undefined: it is answered by its path alone. */
export type Ruled =
  | { readonly kind: 'redirect'; readonly location: string; readonly origin: Origin }
  /** The whole path lies in what the name means; `malformed`: no such name can exist. */
  | { readonly kind: 'name'; readonly name: Name | 'malformed'; readonly isApex: boolean }
  | { readonly kind: 'apex-id' }

/** Characters of a sandbox label (names/sandbox-host.ts). */
const sandboxLabelLength = 52

/** Paths on the root host that are never content of the apex, whether or not something answers there. */
const plainPaths = /^\/(local|chunk|api-docs|graphql)(\/|$)|^\/openapi\.json$/

/**
 * What stands here proves to a certificate authority who controls the host (RFC 8555 section 8.3; CA/Browser Forum baseline
 * requirements 3.2.2.4.18). The owner of a name controls its content only, so that none of these answers is content.
 */
const proofPaths = /^\/\.well-known\/(acme-challenge|pki-validation)(\/|$)/

/** Judges by Host header and path who answers a request: names first, routes afterwards. */
export class HostRules {
  readonly #own: string
  readonly #paid: readonly string[]

  /** `hasRoute`: something besides content answers at this path. */
  constructor(
    private readonly hosts: Hosts,
    private readonly options: HostOptions,
    pathPrefix: string,
    private readonly hasRoute: (path: string) => boolean,
  ) {
    this.#own = `${pathPrefix}/`
    this.#paid = [`${pathPrefix}/x402/`, `${pathPrefix}/rate-limit/`]
  }

  rule(request: Request, target: Target | undefined): Ruled | undefined {
    if (proofPaths.test(request.path)) return undefined
    const place = this.#place(request)
    if (target?.kind === 'data') return this.#redirect(request, place, target.id, origins.own)
    const { name } = place
    if (name !== undefined) {
      const lower = request.path.toLowerCase()
      // Payments for a name's content are made on the name's own host.
      if (this.#paid.some((start) => lower.startsWith(start))) return undefined
      return { kind: 'name', name, isApex: false }
    }
    // Programs use other addresses of content as well, so only documents that a browser shows are redirected.
    if (target !== undefined) return this.shown(request, target.id)
    const isRoot = place.root !== undefined && (place.label === undefined || place.label === 'www')
    return isRoot ? this.#apex(place, request.path) : undefined
  }

  /** A redirect to the host of `id`, where a browser is about to show its content on another one. */
  shown(request: Request, id: Id | undefined): Ruled | undefined {
    if (!isNavigation(request)) return undefined
    return this.#redirect(request, this.#place(request), id, origins.redirecting)
  }

  /** What the origin of content by id is on this host, where the request was not redirected. */
  originOf(request: Request, id: Id | undefined): Origin {
    const place = this.#place(request)
    if (isHostOf(place, id)) return origins.own
    return this.#rootOf(request, place, id) === undefined ? origins.shared : origins.redirecting
  }

  /** The first page of this gateway, from the host of this request: a host of content has another page at `/`, or none. */
  homeOf(request: Pick<Request, 'header' | 'secure'>): Home {
    const { apexId, apexNames, ownPort } = this.options
    const protocol = this.#protocolOf(request)
    const { root, label, port } = this.#place(request)
    const hasSearch = root === undefined || (apexId === undefined && apexNames.length === 0)
    if (root === undefined || label === undefined || label === 'www') return { href: '/', hasSearch }
    return { href: `${originOf(root, { protocol, port, ownPort })}/`, hasSearch }
  }

  /** What came over TLS goes on so; for all else the operator knows what is in front. */
  #protocolOf({ secure }: Pick<Request, 'secure'>): 'http' | 'https' {
    return secure === true ? 'https' : this.options.protocol
  }

  #place(request: Pick<Request, 'header'>): HostPlace {
    return this.hosts.place(request.header('host') ?? '')
  }

  /**
   * Content by id has an origin of its own, so that pages of different owners cannot reach each other: below this root host.
   * Undefined: the host is the content's own, or nobody is redirected from it.
   */
  #rootOf({ method }: Request, place: HostPlace, id: Id | undefined): string | undefined {
    if (id === undefined || (place.label === undefined && !this.options.sandboxBareHosts)) return undefined
    if ((method !== 'GET' && method !== 'HEAD') || isHostOf(place, id)) return undefined
    return place.root ?? this.options.rootHosts[0]
  }

  #redirect(request: Request, place: HostPlace, id: Id | undefined, origin: Origin): Ruled | undefined {
    const root = this.#rootOf(request, place, id)
    if (id === undefined || root === undefined) return undefined
    const { ownPort } = this.options
    const { path, query } = request
    const protocol = this.#protocolOf(request)
    const location = sandboxUrl({ protocol, id, root, port: place.port, ownPort, path, query })
    return { kind: 'redirect', location, origin }
  }

  #apex({ rootIndex }: HostPlace, path: string): Ruled | undefined {
    const { apexId, apexNames } = this.options
    const name = apexNames[apexNames.length === 1 ? 0 : rootIndex]
    if (apexId === undefined && name === undefined) return undefined
    const lower = path.toLowerCase()
    const isPlain =
      lower.startsWith(this.#own) || plainPaths.test(lower) || (lower !== '/' && this.hasRoute(path))
    if (isPlain) return undefined
    return name === undefined ? { kind: 'apex-id' } : { kind: 'name', name, isApex: true }
  }
}

/** True where the host is that of `id`: nothing else has its origin. */
function isHostOf({ label }: HostPlace, id: Id | undefined): boolean {
  // Only labels of this length are worth the comparison.
  return id !== undefined && label?.length === sandboxLabelLength && label === sandboxLabel(id)
}
