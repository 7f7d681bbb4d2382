/** What one path of a route does, for the OpenAPI document. */
export interface Operation {
  /** As OpenAPI writes it: `/chunk/{offset}/data`. Begins with the path of its route. */
  readonly path: string
  readonly summary: string
  /** Statuses that it answers with; those that every path may have (405, 429, 500, 503) are not listed. */
  readonly statuses: readonly number[]
  /** Where they are not those of the route. */
  readonly methods?: readonly string[]
  /** Parameters of the query. */
  readonly query?: readonly string[]
  /** Media type of a good answer; JSON where absent. */
  readonly type?: string
  /** Only with the admin key. */
  readonly operator?: true
}

/** Descriptions of all paths of a route: at least one. */
export type Operations = readonly [Operation, ...Operation[]]
