import type * as z from 'zod'
import type { Shape } from '../../http/operation.js'

/** Input of an order: the body as JSON, not yet validated, and the rest of the path. */
export interface OrderCall {
  /** Undefined where there was no body. */
  readonly body: unknown
  /** The path behind that of the order, where the latter ends in a slash. */
  readonly rest: string
  readonly query: URLSearchParams
  /** The caller, for the audit. */
  readonly by: string
}

/** The answer of an order: JSON or text, never cached. */
export interface OrderAnswer {
  readonly status: number
  readonly body: object | string
  /** Content type of a text; absent: plain text. */
  readonly type?: string
  readonly retryAfterSeconds?: number
  /** Value of Allow for 405 (RFC 9110 section 15.5.6). */
  readonly allow?: readonly string[]
}

/** One admin endpoint under `{prefix}/admin/`. */
export interface Order {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Path below `admin/`, lower case; one that ends in a slash matches everything below it. */
  readonly path: string
  readonly summary: string
  /** Statuses besides those that every order may have (400, 401). */
  readonly statuses: readonly number[]
  /** What is behind a path that ends in a slash: a parameter of http/openapi.ts. */
  readonly rest?: string
  readonly queryNames?: readonly string[]
  /** Media type of a good answer; JSON where absent. */
  readonly type?: string
  /** Bytes of the body at most; 100 kB where absent. */
  readonly bodyMaxBytes?: number
  /** What goes in and out, for the description. */
  readonly shape?: Shape
  act(call: OrderCall): OrderAnswer | Promise<OrderAnswer>
}

/** 200 with a message, in the form that clients of the network expect. */
export function done(message: string, more: object = {}): OrderAnswer {
  return { status: 200, body: { message, ...more } }
}

/** The answer 400 to an order. */
export function malformedOrder(message: string): OrderAnswer {
  return { status: 400, body: message }
}

/** The body parsed by `schema`, or an answer that names the first error. */
export function readBody<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
): z.output<Schema> | OrderAnswer {
  const read = schema.safeParse(body ?? {})
  return read.success ? read.data : malformedOrder(read.error.issues[0]?.message ?? 'Malformed body')
}

/** Whether a reader of an order gave an answer in place of what it read. */
export function isOrderAnswer(value: unknown): value is OrderAnswer {
  return typeof value === 'object' && value !== null && 'status' in value && 'body' in value
}
