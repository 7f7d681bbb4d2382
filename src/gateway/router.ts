import type { Route } from './parts.js'

/** Finds the route of a path: exact ones first, then the longest that the path lies below. Letter case does not count. */
export class Router {
  readonly #exact = new Map<string, Route>()
  readonly #below: readonly Route[]

  /** Throws where two routes claim one path: a bug. */
  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      if (route.path !== route.path.toLowerCase()) throw new Error(`route ${route.path} is not in lower case`)
      if (this.#exact.has(route.path)) throw new Error(`two routes for ${route.path}`)
      this.#exact.set(route.path, route)
    }
    this.#below = routes
      .filter(({ path }) => path.length > 1 && path.endsWith('/'))
      .sort((one, other) => other.path.length - one.path.length)
  }

  find(path: string): Route | undefined {
    const lower = path.toLowerCase()
    return this.#exact.get(lower) ?? this.#below.find((route) => lower.startsWith(route.path))
  }
}
