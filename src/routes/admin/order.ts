import type { z } from 'zod'

/** What an order is given: the body as JSON, still unchecked, and the rest of the address. */
export interface Asked {
  /** Undefined where there was no body. */
  readonly body: unknown
  /** Behind the order's path, where that ends in a slash. */
  readonly rest: string
  readonly query: URLSearchParams
  /** Who asks, for the audit. */
  readonly by: string
}

/** JSON, or words; never cached. */
export interface Told {
  readonly status: number
  readonly body: object | string
  readonly retryAfterSeconds?: number
  /** Methods that would do (RFC 9110 section 15.5.6). */
  readonly allow?: readonly string[]
}

/** One thing that an operator may ask for under `{prefix}/admin/`. */
export interface Order {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Below `admin/`, lower case; one that ends in a slash takes what is behind it. */
  readonly path: string
  readonly summary: string
  /** Statuses, but for those that every order may have (400, 401). */
  readonly statuses: readonly number[]
  /** What is behind a path that ends in a slash: a parameter of gateway/openapi.ts. */
  readonly rest?: string
  readonly queryNames?: readonly string[]
  /** Of the body; 100 kB where absent. */
  readonly bodyMaxBytes?: number
  act(asked: Asked): Told | Promise<Told>
}

/** Good: 200 with a word, as all clients know it. */
export function done(message: string, more: object = {}): Told {
  return { status: 200, body: { message, ...more } }
}

export function wrong(message: string): Told {
  return { status: 400, body: message }
}

/** The body as `schema` has it, or what the first thing wrong with it is. */
export function readBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> | Told {
  const read = schema.safeParse(body ?? {})
  return read.success ? read.data : wrong(read.error.issues[0]?.message ?? 'Malformed body')
}

export function isTold(value: unknown): value is Told {
  return typeof value === 'object' && value !== null && 'status' in value && 'body' in value
}
