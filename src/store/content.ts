/**
 * The bytes of one payload as a reader on an edge thread sees them: a whole blob on disk, or a file that still grows.
 * Only demand moves towards the source: nothing is read before it is requested.
 */
export interface Content {
  /** Bytes of the whole payload. */
  readonly sizeBytes: number
  /**
   * A view of bytes from `start` (inclusive), at most up to `end` (exclusive), at least one byte; the caller takes what it
   * can use. The view is valid until the next call. Undefined: not here without waiting (not arrived, or not in memory);
   * ask `ready`. Throws where the bytes are not to be had at all (a file was cut, a descriptor closed), and a RangeError outside
   * the payload: a bug.
   */
  read(start: number, end: number): Uint8Array | undefined
  /** Resolves true as soon as `read(start, end)` would give bytes, false when it never will (the source broke). */
  ready(start: number, end: number): Promise<boolean>
  /** Gives back whatever is held. Called exactly once; nothing may be called after it. */
  close(): void
}
