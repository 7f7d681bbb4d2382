import { type AnswerType, queryJsonType } from './media.js'
import type { QueryResponse } from './query-messages.js'

/** A refusal before the query is parsed: status and message. */
export interface Refused {
  readonly status: number
  readonly message: string
}

/** An answer with the header lines that all answers have. */
export function respond(
  status: number,
  body: string,
  type: string,
  more: readonly string[] = [],
): QueryResponse {
  const lines = [`Content-Type: ${type}; charset=utf-8`, 'X-Content-Type-Options: nosniff', ...more]
  return { status, lines, body }
}

/** A refusal as clients of GraphQL read it. */
export function refusedWith(
  { status, message }: Refused,
  type: AnswerType | undefined,
  more: readonly string[] = [],
  code = 'BAD_REQUEST',
): QueryResponse {
  const body = JSON.stringify({ errors: [{ message, extensions: { code } }] })
  return respond(status, body, type ?? queryJsonType, more)
}
