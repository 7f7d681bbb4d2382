import type { AnySignal } from '../actor/lazy-signal.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import type { ContentRequest, Hints, Window } from './source-messages.js'

/** What a transfer requests of a source: the request that began it, and what the transfer knows. */
export interface Wanted extends Pick<ContentRequest, 'id' | 'hints' | 'provenance' | 'window' | 'client'> {
  /** What is known already. */
  readonly attributes?: Attributes
  /** Only bytes of which the source knows what they are read out of (`Found.around`): others may be out of what is blocked. */
  readonly needsPlace?: true
  /** Origins (`Found.origin`) that failed for this very want and get no more requests for it. */
  readonly avoid: ReadonlySet<string>
}

/** What a source learned of the item without being believed: where to look for proof. */
export type Learned = Omit<Attributes, 'id' | 'size' | 'verified' | 'trusted' | 'digest'>

/** A payload on its way. Whoever takes it iterates `body` to its end, or leaves the iteration early, which frees all. */
export interface Found {
  /** Name of the source, e.g. `trusted-gateways`. */
  readonly name: string
  /** Which server brings it, to be avoided should it break. */
  readonly origin: string
  /** Bytes of the whole payload, also where a window is brought. */
  readonly sizeBytes: number
  /**
   * Pieces in order. A refusal is the last word: the source broke (`upstream`, `late`) or its bytes did not prove
   * (`forged`). Nothing is read ahead of demand but what the source needs to keep its line busy (bounded).
   */
  readonly body: AsyncIterable<Uint8Array | Refusal>
  /**
   * All pieces of the body at once, in place of `body`: for small payloads. A refusal: it broke, or has more than `maxBytes`.
   * Absent: `body` is the only way.
   */
  readonly collect?: (maxBytes: number) => Promise<readonly Uint8Array[] | Refusal>
  /** What `collect` gave is read no more: its memory may be used again. Absent: nobody needs to hear of that. */
  readonly release?: () => void
  /** Pieces of the body stay as they are; else each is valid until the next one is requested. */
  readonly isLasting?: true
  /** From a server that the operator trusts, or proven. */
  readonly trusted: boolean
  /** Every byte was proven against the chain by the time the body ended without a refusal. */
  readonly proven: boolean
  /**
   * An item from a place that is not known as its own: the owner's signature is checked after the last byte. Until then nothing
   * of it may be shown or recorded: no bytes, size, type or place.
   */
  readonly isJudgedAtEnd?: true
  /** Type, encoding, and, only where `proven`, place and header. */
  readonly learned: Learned
  /** Where the server says that the item lies: to be proven, not to be believed. */
  readonly hints: Hints
  /** Transaction and items that the bytes are read out of, as the source has found them. Absent: it knows of none. */
  readonly around?: readonly Id[]
  /** SHA-256 of the whole payload that the server declared. */
  readonly declaredDigest?: Uint8Array
  /** Asks the same server for a window of the same payload, under the same signal: for a body that broke off. */
  readonly again?: (window: Window) => Promise<Found | Refusal>
  /** Gateways that the answer came through to this one. Absent: it is from no gateway. */
  readonly hops?: number
}

/**
 * Brings payloads. Refusals: `unknown` (this source denies the id), `upstream` and `late` (it did not answer, or malformed),
 * `forged`, `busy`, `unsatisfiable` (the window is outside the payload). `ending` ends the opening and the body; an aborted
 * opening answers `late`.
 */
export interface Source {
  readonly name: string
  /** False: this source denies the id, which it knows without waiting. Absent: it gets the request. */
  mayHave?(wanted: Wanted): boolean
  readonly open: (wanted: Wanted, ending: AnySignal) => Promise<Found | Refusal>
}
