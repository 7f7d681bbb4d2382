import type { Requester } from '../../actor/requester.js'
import type { Refusal } from '../../format/refusal.js'
import type { Window } from '../source-messages.js'

/**
 * What is wrong with an object store, where somebody has to do something about it. `away`: it does not answer, or fails;
 * `credentials`: it does not know them; `denied`: they do not allow this; `bucket`: there is no such bucket here; `full`: it
 * takes nothing more; `clock`: this machine's time differs too much from its time.
 */
export const storeFaults = ['away', 'credentials', 'denied', 'bucket', 'full', 'clock'] as const
export type StoreFault = (typeof storeFaults)[number]

/** A refusal that says something about the store, and not about the object. */
export interface StoreRefusal extends Refusal {
  readonly storeFault: StoreFault
}

export interface ObjectHead {
  /** Bytes of the whole object. */
  readonly sizeBytes: number
  readonly contentType?: string
  /** User metadata (`x-amz-meta-*`), by lower-case names without that beginning. */
  readonly metadata: Readonly<Record<string, string>>
}

/** An object on its way. The body is iterated to its end, or left early, or dropped. */
export interface ObjectBody extends ObjectHead {
  /** The bytes that come, where a window was requested: a window that reaches beyond the end is cut off there. */
  readonly part?: Window
  /** Pieces in order, which stay as they are; a refusal is the last word. */
  readonly body: AsyncIterable<Uint8Array | Refusal>
  /** Lets go of it; nothing of the body may have been read. */
  drop(): void
}

/** What is put. */
export interface ObjectContent {
  readonly sizeBytes: number
  /** SHA-256 of all bytes: the store refuses others. */
  readonly sha256: Uint8Array
  /** Makes the bytes; more than once where the connection breaks. An iteration that is left early frees what it holds. */
  readonly bytes: () => AsyncIterable<Uint8Array> | readonly Uint8Array[]
  readonly contentType?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** An object that is there stays as it is. Of several that put one at the same time, one succeeds. */
  readonly isNew?: boolean
}

/** What is put in parts: too long for one request, or for memory. */
export interface LargeContent {
  readonly sizeBytes: number
  /** Bytes from `start` on. They stay as they are. Rejects where they are gone: nothing is put then. */
  readonly read: (start: number, length: number) => Promise<Uint8Array>
}

export interface ObjectPage {
  /** In the order of their UTF-8 bytes. */
  readonly keys: readonly string[]
  /** There are more behind the last key. */
  readonly hasMore: boolean
}

/**
 * Objects by keys, in an existing engine. All methods resolve with a refusal where something expected fails: `unknown` (no
 * such object), `unsatisfiable` (the window is outside of it), `late`, `busy`, `upstream`; with a `StoreRefusal` where the store
 * itself is at fault. Nothing waits without an end. What it answers is what a stranger says.
 */
export interface ObjectStore {
  get(key: string, window: Window | undefined, requester: Requester): Promise<ObjectBody | Refusal>
  head(key: string, signal: AbortSignal): Promise<ObjectHead | Refusal>
  /** `exists`: only with `isNew`. */
  put(key: string, content: ObjectContent, requester: Requester): Promise<'put' | 'exists' | Refusal>
  /** Puts an object in parts. Nobody sees it before it is whole. */
  putLarge(key: string, content: LargeContent, signal: AbortSignal): Promise<'put' | Refusal>
  /** Removes parts of objects that were never made whole, where `isLeft` says so of their keys. Resolves with their number. */
  dropParts(prefix: string, isLeft: (key: string) => boolean, signal: AbortSignal): Promise<number | Refusal>
  /** Milliseconds that the store's clock is ahead of this machine's, by its last answer to a `put` or `list`; to a second. */
  readonly aheadMs: number
  /** Keys that begin with `prefix`, from behind `after` on; at most 1000. */
  list(prefix: string, after: string | undefined, signal: AbortSignal): Promise<ObjectPage | Refusal>
  /** Also well where there is no such object. */
  remove(key: string, signal: AbortSignal): Promise<'removed' | Refusal>
  close(): Promise<void>
}

/** What of the store is at fault; undefined where a refusal says nothing about it. */
export function faultOf(refusal: Refusal): StoreFault | undefined {
  if ('storeFault' in refusal) return (refusal as StoreRefusal).storeFault
  const isOfStore = refusal.refused === 'late' || refusal.refused === 'upstream'
  return isOfStore && refusal.fault === 'upstream' ? 'away' : undefined
}
