/**
 * One file that can be read without copying and without waiting. Offsets are bytes; `end` is exclusive; a range that is not
 * within the file is a RangeError. The file must never shrink or change in place while it is open.
 */
export interface MappedFile {
  readonly sizeBytes: number
  readonly inode: bigint
  /** Time of the last change, nanoseconds since 1970. */
  readonly modifiedNs: bigint
  /** True where these bytes are in memory. Never waits for the disk. `fill`: their first use; makes the next ones faster. */
  isResident(start: number, end: number, fill: boolean): boolean
  /**
   * Bytes from `start`, at most up to `end`, at least one. Call `isResident` first, or the thread may wait for the disk. The view
   * is valid until the next call (of any file: the fallback has one buffer).
   */
  view(start: number, end: number): Uint8Array
  /**
   * Copies bytes from `start` on into all of `target`. False where they cannot be read: the file was truncated, or the disk
   * fails. The only safe way to look at bytes of a file that may be damaged. May wait for the disk.
   */
  copy(start: number, target: Uint8Array): boolean
  /**
   * Begins to read the bytes from `ranges[0]` to `ranges[1]`, from `ranges[2]` to `ranges[3]` and so on, all at once, and does
   * not wait. What lies outside of the file is left out. Without the addon nothing happens.
   */
  ahead(ranges: Float64Array): void
  /** All of it is read soon, from its beginning to its end, and perhaps nobody wants it afterwards: the disk reads ahead. */
  readThrough(): void
  /** Brings these bytes into memory, off the thread. True once they are there, false where the disk failed. */
  fetch(start: number, end: number): Promise<boolean>
  /** Releases everything; views become empty. Nothing may be called after it. */
  close(): void
}
