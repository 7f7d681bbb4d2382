import { type AnswerType, jsonType } from './media.js'
import type { QueryResponse } from './protocol.js'

/** Refused before any GraphQL: a status and what to say. */
export interface Refused {
  readonly status: number
  readonly message: string
}

/** An answer with what every answer has in common. */
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
  return respond(status, body, type ?? jsonType, more)
}
