import { loadAddon } from '../addon.js'
import { openTwin } from './twin.js'

/**
 * One file that can be read without copying and without waiting. Offsets are bytes; `end` is exclusive. The file must never
 * shrink or change in place while it is open.
 */
export interface MappedFile {
  readonly sizeBytes: number
  readonly inode: bigint
  /** Time of the last change, nanoseconds since 1970. */
  readonly modifiedNs: bigint
  /** True where these bytes are in memory. Never waits for the disk. `fill`: their first use; makes the next ones faster. */
  settle(start: number, end: number, fill: boolean): boolean
  /**
   * Bytes from `start`, at most up to `end`, at least one. Ask `settle` first, or the thread may wait for the disk. The view
   * is valid until the next call (of any file: the twin has one buffer).
   */
  view(start: number, end: number): Uint8Array
  /**
   * A large part of the file, as it lies in memory, around `start` (inclusive) and `end` (exclusive): valid until `close`.
   * Undefined where there is none. Its bytes must not be read where `settle` does not say that they are there.
   */
  window(start: number, end: number): FileWindow | undefined
  /** Brings these bytes into memory, off the thread. True once they are there, false where the disk failed. */
  fetch(start: number, end: number): Promise<boolean>
  /** Gives everything back; views become empty. Nothing may be called after it. */
  close(): void
}

export interface FileWindow {
  readonly start: number
  readonly bytes: Uint8Array
  /** Descriptor of the open file, for the server to send from; -1 where the file is small. */
  readonly file: number
}

declare const handleBrand: unique symbol
type Handle = { readonly [handleBrand]: true }

type Opened = Pick<MappedFile, 'sizeBytes' | 'inode' | 'modifiedNs'> & { handle: Handle; descriptor: number }

interface Addon {
  open(path: string): Opened | undefined
  window(handle: Handle, index: number): ArrayBuffer
  settle(handle: Handle, start: number, end: number, fill: boolean): boolean
  fetch(handle: Handle, start: number, end: number): Promise<boolean>
  close(handle: Handle): void
  detach(buffer: ArrayBuffer): void
  mapped(): [count: number, bytes: number]
}

/** Bytes that one ArrayBuffer of the addon covers. */
const windowBytes = 2 ** 30

const addon = loadAddon<Addon>('mapped')

/** Which way files are read here: through the addon, or through its slower twin where the addon was not built. */
export const mappedBy: 'addon' | 'twin' = addon === undefined ? 'twin' : 'addon'

class AddonFile implements MappedFile {
  readonly sizeBytes: number
  readonly inode: bigint
  readonly modifiedNs: bigint
  readonly #descriptor: number
  readonly #addon: Addon
  readonly #handle: Handle
  readonly #windows: (ArrayBuffer | undefined)[] = []

  constructor(native: Addon, opened: Opened) {
    this.#addon = native
    this.#handle = opened.handle
    this.sizeBytes = opened.sizeBytes
    this.inode = opened.inode
    this.modifiedNs = opened.modifiedNs
    this.#descriptor = opened.descriptor
  }

  settle(start: number, end: number, fill: boolean): boolean {
    return this.#addon.settle(this.#handle, start, end, fill)
  }

  view(start: number, end: number): Uint8Array {
    const index = Math.floor(start / windowBytes)
    const buffer = this.#windows[index] ?? this.#open(index)
    const offset = start - index * windowBytes
    return new Uint8Array(buffer, offset, Math.min(end - start, buffer.byteLength - offset))
  }

  window(start: number, end: number): FileWindow | undefined {
    const index = Math.floor(start / windowBytes)
    const buffer = this.#windows[index] ?? this.#open(index)
    if (end > index * windowBytes + buffer.byteLength) return undefined
    return { start: index * windowBytes, bytes: new Uint8Array(buffer), file: this.#descriptor }
  }

  #open(index: number): ArrayBuffer {
    const buffer = this.#addon.window(this.#handle, index)
    this.#windows[index] = buffer
    return buffer
  }

  fetch(start: number, end: number): Promise<boolean> {
    return this.#addon.fetch(this.#handle, start, end)
  }

  close(): void {
    for (const buffer of this.#windows) if (buffer !== undefined) this.#addon.detach(buffer)
    this.#addon.close(this.#handle)
  }
}

/** The file at `path` through the addon; undefined where there is no such file, or no addon. Throws on other failures. */
export function openAddon(path: string): MappedFile | undefined {
  const opened = addon?.open(path)
  return addon === undefined || opened === undefined ? undefined : new AddonFile(addon, opened)
}

/** The file at `path`, or undefined where there is none. Throws on any other failure of the disk. */
export const openMapped: (path: string) => MappedFile | undefined = addon === undefined ? openTwin : openAddon

/** Mappings that the whole process holds, and their bytes of address space; zeros without the addon. */
export function mappedNow(): { count: number; bytes: number } {
  const [count, bytes] = addon?.mapped() ?? [0, 0]
  return { count, bytes }
}
