import { type Described, descriptionFault, type PathParameters } from './openapi.js'
import type { Operations } from './operation.js'

/** What a router must know of a route. */
export interface Routed {
  /** Lower case. A path that ends in `/` takes everything below it, any other only itself. */
  readonly path: string
  /** HEAD may be left out beside GET. */
  readonly methods: readonly string[]
  /** Every path that it answers, for `/openapi.json`. */
  readonly about: Operations
}

/**
 * Finds the route of a path: exact ones first, then the longest that the path lies below. Letter case does not count, nor does a
 * slash at the end, unless a route describes just that path: other servers of these interfaces do not mind it either.
 */
export class Router<Route extends Routed> {
  readonly #exact = new Map<string, Route>()
  readonly #methods = new Map<Route, readonly string[]>()
  /** Paths with a slash behind them. */
  readonly #slashed = new Map<string, Route>()
  readonly #below: readonly Route[]

  /** Throws where two routes claim one path, or one describes what it does not answer: a bug. */
  constructor(
    private readonly routes: readonly Route[],
    parameters: PathParameters,
  ) {
    for (const route of routes) {
      const fault = route.about
        .map((one) => misplaced(route, one.path) ?? descriptionFault(one, parameters))
        .find((one) => one)
      if (fault !== undefined) throw new Error(fault)
      if (route.path !== route.path.toLowerCase()) throw new Error(`route ${route.path} is not in lower case`)
      if (this.#exact.has(route.path)) throw new Error(`two routes for ${route.path}`)
      this.#exact.set(route.path, route)
      this.#methods.set(route, withHead(route.methods))
    }
    const described = new Set(routes.flatMap(({ about }) => about.map(({ path }) => path.toLowerCase())))
    for (const route of routes) {
      const slashed = `${route.path}/`
      if (!route.path.endsWith('/') && !described.has(slashed)) this.#slashed.set(slashed, route)
    }
    this.#below = routes
      .filter(({ path }) => path.length > 1 && path.endsWith('/'))
      .sort((one, other) => other.path.length - one.path.length)
  }

  /** Every path of every route. */
  get operations(): readonly Described[] {
    return this.routes.flatMap(({ about, methods }) =>
      about.map((one) => ({ ...one, methods: withHead(one.methods ?? methods) })),
    )
  }

  /** What a route of this router answers: HEAD wherever it answers GET (RFC 9110 section 9.1). */
  methodsOf(route: Route): readonly string[] {
    return this.#methods.get(route) ?? withHead(route.methods)
  }

  find(path: string): Route | undefined {
    const lower = path.toLowerCase()
    return (
      this.#slashed.get(lower) ??
      this.#exact.get(lower) ??
      this.#below.find((route) => lower.startsWith(route.path))
    )
  }
}

function withHead(methods: readonly string[]): readonly string[] {
  return methods.includes('GET') && !methods.includes('HEAD')
    ? methods.flatMap((one) => (one === 'GET' ? ['GET', 'HEAD'] : [one]))
    : methods
}

function misplaced({ path }: Routed, described: string): string | undefined {
  const isOf = path.length > 1 && path.endsWith('/') ? described.startsWith(path) : described === path
  return isOf ? undefined : `the route ${path} describes ${described}`
}
