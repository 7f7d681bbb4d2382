import type { Request } from '../http/exchange.js'
import type { Hosts, Place } from '../names/host.js'
import type { Name } from '../names/protocol.js'
import { sandboxLabel, sandboxUrl } from '../names/sandbox.js'
import type { Target } from './data-route.js'
import type { HostOptions } from './parts.js'

/** What the host of a request makes of it. Undefined: it is answered by its path alone. */
export type Ruled =
  | { readonly kind: 'redirect'; readonly location: string }
  /** The whole path lies in what the name means; `malformed`: no such name can exist. */
  | { readonly kind: 'name'; readonly name: Name | 'malformed'; readonly isApex: boolean }
  | { readonly kind: 'apex-id' }

/** Paths on the root host that are never content of the apex, whether or not something answers there. */
const plainPaths = /^\/(local|chunk|api-docs|graphql)(\/|$)|^\/openapi\.json$/

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
    const place = this.hosts.place(request.header('host') ?? '')
    if (target?.kind === 'data') return this.#sandbox(request, place, target)
    const { name } = place
    if (name !== undefined) {
      const lower = request.path.toLowerCase()
      // Who has to pay for a name's content does it on the name's own host.
      if (this.#paid.some((start) => lower.startsWith(start))) return undefined
      return { kind: 'name', name, isApex: false }
    }
    const isRoot = place.root !== undefined && (place.label === undefined || place.label === 'www')
    return isRoot && target === undefined ? this.#apex(place, request.path) : undefined
  }

  /** Content by id has an origin of its own, so that pages of different owners cannot reach each other. */
  #sandbox(request: Request, place: Place, { id }: Target): Ruled | undefined {
    const { options } = this
    const root = place.root ?? options.rootHosts[0]
    if (id === undefined || root === undefined) return undefined
    if (place.label === undefined && !options.sandboxBareHosts) return undefined
    if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
    // Only labels of this length are worth the comparison.
    if (place.label?.length === 52 && place.label === sandboxLabel(id)) return undefined
    const { protocol, ownPort } = options
    const { path, query } = request
    return {
      kind: 'redirect',
      location: sandboxUrl({ protocol, id, root, port: place.port, ownPort, path, query }),
    }
  }

  #apex({ rootIndex }: Place, path: string): Ruled | undefined {
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
