/**
 * What `workers/moderation.ts` is started with (plain, cloned). It answers `ModerationRequest` with `ModerationReply` on every
 * port that `{connect: port}` brings.
 */
export interface ModerationThread {
  /** Folder of the list. */
  readonly path: string
  /** Folder of the catalog, and its `generationBytes`: sizes of blocked content are known there. */
  readonly catalogPath: string
  readonly generations: SharedArrayBuffer
  /** Memory of the `BlockFilter`, shared with every reader. */
  readonly filter: SharedArrayBuffer
  readonly logLevel: string
}
