import type { Id } from '../format/id.js'

/**
 * What must not be served. Answers at once, from memory that every thread shares or from an LMDB snapshot; a change is seen by
 * the next question on every thread. A list that cannot be read blocks everything: it fails closed.
 */
export interface BlockList {
  /** `id` itself, or something it lies in, as far as `chain` names it (parents and root, any order). */
  blocksId(id: Id, chain?: readonly Id[]): boolean
  /** SHA-256 of the content, 32 bytes. */
  blocksDigest(digest: Uint8Array): boolean
  /** The whole label in front of the root host, undername and all, lower case. */
  blocksName(label: string): boolean
}
