/** The client for whom others are called. */
export interface Requester {
  /** Address of the client whose turns a call takes; absent: this program itself, which has turns of its own. */
  readonly client?: string | undefined
  /** Fires when nobody waits for the answer. */
  readonly signal: AbortSignal
}
