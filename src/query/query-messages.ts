import type { Refusal } from '../format/refusal.js'

/** One request to the query address, as it crosses threads. */
export interface QueryAsk {
  readonly method: string
  /** Behind the question mark. */
  readonly query: string
  readonly accept?: string
  readonly contentType?: string
  readonly body?: Uint8Array
}

/** What is answered. */
export interface QueryResponse {
  readonly status: number
  /** Header lines. */
  readonly lines: readonly string[]
  readonly body: string
}

/** To a query thread. */
export interface QueryOrder {
  readonly request: QueryAsk
  /** The client, for the fair queue. */
  readonly client: string
  /** Index in the shared table of this port: not 0 there means that the client has left. */
  readonly place: number
}

/** From a query thread; a large body as bytes that were moved. Refusals: `busy`, `upstream` (a bug of ours). */
export type QueryReply = (Omit<QueryResponse, 'body'> & { readonly body: string | Uint8Array }) | Refusal

/** What travels with a line to a query thread: one number a place, not 0 where the client has left. */
export interface QueryLineAbout {
  readonly left: SharedArrayBuffer
}

/** How many queries wait, and of whom. */
export interface QueryQueue {
  /** Queries that wait for one thread or are open on it. */
  readonly waitingMax: number
  /** How many of those one client may have. */
  readonly clientMax: number
  /** Longest wait for a turn. */
  readonly waitMs: number
}
