import { ftruncateSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import { loadAddon } from '../addon.js'
import type { MappedFile } from './mapped-file.js'
import { openTwin } from './twin.js'

declare const handleBrand: unique symbol
type Handle = { readonly [handleBrand]: true }

type Opened = Pick<MappedFile, 'sizeBytes' | 'inode' | 'modifiedNs'> & { handle: Handle }

interface Addon {
  open(path: string): Opened | undefined
  openWritten(path: string): Opened | undefined
  copy(handle: Handle, start: number, target: Uint8Array): boolean
  allocate(descriptor: number, sizeBytes: number): number
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
  readonly #addon: Addon
  readonly #handle: Handle
  readonly #windows: (ArrayBuffer | undefined)[] = []

  constructor(native: Addon, opened: Opened) {
    this.#addon = native
    this.#handle = opened.handle
    this.sizeBytes = opened.sizeBytes
    this.inode = opened.inode
    this.modifiedNs = opened.modifiedNs
  }

  settle(start: number, end: number, fill: boolean): boolean {
    return this.#addon.settle(this.#handle, start, end, fill)
  }

  view(start: number, end: number): Uint8Array {
    if (!(start >= 0 && start <= end && end <= this.sizeBytes))
      throw new RangeError(`[${start}, ${end}) is not within ${this.sizeBytes} bytes`)
    const index = Math.floor(start / windowBytes)
    const buffer = this.#windows[index] ?? this.#open(index)
    const offset = start - index * windowBytes
    return new Uint8Array(buffer, offset, Math.min(end - start, buffer.byteLength - offset))
  }

  copy(start: number, target: Uint8Array): boolean {
    return this.#addon.copy(this.#handle, start, target)
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

/**
 * The same for a file that is still being written to, and whose size stays: its time changes, and yet all threads share one
 * mapping. Bytes may be read once they are known to be written.
 */
export const openWritten: (path: string) => MappedFile | undefined =
  addon === undefined
    ? openTwin
    : (path) => {
        const opened = addon.openWritten(path)
        return opened === undefined ? undefined : new AddonFile(addon, opened)
      }

/**
 * Gives an open file this size, with room on the disk for all of it, so that writing into it later cannot fail for want of room.
 * Throws the system's error. Without the addon, and on file systems that cannot, no room is kept.
 */
export function allocate(descriptor: number, sizeBytes: number): void {
  const failed = addon === undefined ? 0 : addon.allocate(descriptor, sizeBytes)
  if (addon === undefined) ftruncateSync(descriptor, sizeBytes)
  if (failed === 0) return
  const code = getSystemErrorName(-failed)
  throw Object.assign(new Error(`${code}: allocate ${sizeBytes} bytes`), { code, syscall: 'fallocate' })
}

/** Mappings that the whole process holds, and their bytes of address space; zeros without the addon. */
export function mappedNow(): { count: number; bytes: number } {
  const [count, bytes] = addon?.mapped() ?? [0, 0]
  return { count, bytes }
}
