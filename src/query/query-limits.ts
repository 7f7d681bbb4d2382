/** Limits of one request. */
export interface QueryLimits {
  /** Bytes of a request's body, or of the query in its URL, at most. */
  readonly sizeMaxBytes: number
  /** Tokens of a query. */
  readonly tokensMax: number
  /** Fields inside fields, introspection apart. */
  readonly depthMax: number
  /** Fields that the answer may have: each field counts as often as its page has entries. */
  readonly fieldsMax: number
  /** Selections from the root: `transactions` twice under two names are two. */
  readonly rootsMax: number
  /** Values of one list: ids, owners, values of a tag... */
  readonly listMax: number
  /** Values of all lists of all selections of a request together: each takes a look-up before the first row is read. */
  readonly valuesMax: number
  /** Tag filters of one selection. */
  readonly tagsMax: number
  /** Rows of one page; larger pages are cut down to this. */
  readonly pageMax: number
  /** Queries of one batch. */
  readonly batchMax: number
  /** Signatures and keys that are read from content for one request. */
  readonly loadsMax: number
  /** Longest wait of one request for those; what is not here by then is left empty. */
  readonly waitMs: number
  /** Look-ups in the index of one request (2 to 10 us each). */
  readonly stepsMax: number
  /** Time of the processor for one request. */
  readonly timeMs: number
  /** Wall-clock time for one request: reading from disk takes no processor time, but holds the thread. */
  readonly wallMs: number
  /** Bytes of the answer at most, all queries of a batch together. */
  readonly answerMaxBytes: number
  /** Bytes of all answers of one thread that wait for signatures and keys; above, the largest is given without them. */
  readonly waitingMaxBytes: number
}

/** The defaults; an operator's settings go over them. */
export const queryLimits: QueryLimits = {
  // The nodes' limit for bodies: a chunk in base64url.
  sizeMaxBytes: 367_001,
  tokensMax: 20_000,
  depthMax: 12,
  fieldsMax: 250_000,
  rootsMax: 50,
  listMax: 1000,
  valuesMax: 2500,
  tagsMax: 20,
  pageMax: 1000,
  batchMax: 10,
  loadsMax: 100,
  waitMs: 12_000,
  stepsMax: 50_000,
  timeMs: 250,
  wallMs: 5000,
  answerMaxBytes: 16 * 2 ** 20,
  waitingMaxBytes: 64 * 2 ** 20,
}
