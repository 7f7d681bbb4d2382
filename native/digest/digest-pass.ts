/** What is cut how. A block is of whole 64 bytes, a piece of whole blocks. */
export interface Cut {
  readonly blockBytes: number
  readonly pieceBytes: number
}

/** Digests of the same bytes. */
export interface Digests {
  /** SHA-256 of all of them, 32 bytes. */
  readonly whole: Buffer
  /** SHA-256 of each block, 32 bytes each; the last block may be shorter. None of nothing. */
  readonly blocks: Buffer
  /** SHA-1 of each piece, 20 bytes each; the last piece filled up with zeros. None of nothing. */
  readonly pieces: Buffer
}

/** One pass over some bytes. */
export interface DigestPass {
  /** The next bytes, cut anywhere. */
  update(bytes: Uint8Array): void
  /** The end; nothing may be called after it. */
  finish(): Digests
}
