import { join } from 'node:path'
import type { Cell } from '../actor/shared.js'
import type { Id } from '../format/id.js'

/**
 * What must not be served. Answers at once, from memory that every thread shares and an LMDB snapshot behind it; a
 * change is seen by the next look-up on every thread. A list that cannot be read blocks everything: it fails closed.
 */
export interface BlockList {
  /**
   * Grows with every entry that is added: a verdict "not blocked" is valid only as long as the version stays the
   * same. Releases do not change it, because only such verdicts may be remembered.
   */
  readonly version: number
  /** Where the version stands. Absent: not in shared memory. */
  readonly versionCell?: Cell
  /** False: the last look-up failed; everything counts as blocked until one succeeds. */
  readonly isReadable: boolean
  /** False: nothing but names is blocked, so no content can be. */
  readonly mayBlockContent: boolean
  /** False: nothing is blocked by its hash, so digests of content are not needed. */
  readonly mayBlockHashes: boolean
  /**
   * False: no content of this size is blocked by its hash; absent: of any size. The size for a blocked hash is known where the
   * content was here once.
   */
  mayBlockSize(sizeBytes?: number): boolean
  /** `id` itself, or something it lies in, as far as `chain` names it (parents and root, any order). */
  blocksId(id: Id, chain?: readonly Id[]): boolean
  /** SHA-256 of the content, 32 bytes. */
  blocksDigest(digest: Uint8Array): boolean
  /** The whole label in front of the root host, undername and all, lower case. */
  blocksName(label: string): boolean
}

export const subjectKinds = ['id', 'hash', 'name'] as const
export type SubjectKind = (typeof subjectKinds)[number]

/** What an entry is about: an id or a SHA-256 of content (both 43 characters of base64url), or a name's whole label. */
export interface Subject {
  readonly kind: SubjectKind
  /** Canonical (moderation/subject.ts). */
  readonly key: string
}

/** Why something is blocked. */
export interface Ground {
  /** Where the content was identified, such as the name of a public list. */
  readonly source: string
  /** The operator's reason. */
  readonly notes: string
}

/** An entry as it is kept. */
export interface Blocked extends Subject, Ground {
  readonly blockedAtSeconds: number
  /** Entries in the order in which they were blocked. */
  readonly sequence: number
}

/** Messages to the keeper of the list. `by`: the caller, for the audit. */
export type ModerationRequest =
  | { readonly kind: 'block'; readonly subject: Subject; readonly ground: Ground; readonly by: string }
  | { readonly kind: 'release'; readonly subject: Subject; readonly by: string }

/** Comes when the change is on disk and every thread sees it. `changed`: the list was different before. */
export interface ModerationReply {
  readonly kind: 'done'
  readonly changed: boolean
}

/** Folder of the list below the folder of all state. */
export function moderationPath(dataPath: string): string {
  return join(dataPath, 'moderation')
}
