/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 takes it. */
export type Schema = Readonly<Record<string, unknown>>

/** A body: its media type, and its form where that is JSON. */
export interface BodyShape {
  readonly type: string
  readonly schema?: Schema
  /** It may be left out. */
  readonly isOptional?: true
}

/** What goes in and out of an operation, besides its parameters. */
export interface Shape {
  readonly takes?: BodyShape
  /** Form of a good answer in JSON. */
  readonly gives?: Schema
  /** Answers of a status that differ from the others; undefined: without a body. */
  readonly answers?: Readonly<Record<number, BodyShape | undefined>>
}

/** What one path of a route does, for the OpenAPI document. */
export interface Operation {
  /** The path as OpenAPI writes it: `/chunk/{offset}/data`. Begins with the path of its route. */
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
  readonly shape?: Shape
}

/** Descriptions of all paths of a route: at least one. */
export type Operations = readonly [Operation, ...Operation[]]
