import { ftruncateSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import { loadAddon } from '../addon.js'
import { openFallback } from './mapped-fallback.js'
import type { MappedFile } from './mapped-file.js'

declare const handleBrand: unique symbol
type Handle = { readonly [handleBrand]: true }

declare const placesBrand: unique symbol
/** For the server, so that it sends bytes of mapped files from the files: see native/file-places.h. */
export type FilePlaces = { readonly [placesBrand]: true }

type Opened = Pick<MappedFile, 'sizeBytes' | 'inode' | 'modifiedNs'> & { handle: Handle }

interface Addon {
  open(path: string): Opened | undefined
  openWritten(path: string): Opened | undefined
  openScattered(path: string): Opened | undefined
  ahead(handle: Handle, ranges: Uint8Array): void
  readThrough(handle: Handle): void
  copy(handle: Handle, start: number, target: Uint8Array): boolean
  allocate(descriptor: number, sizeBytes: number): number
  window(handle: Handle, index: number): ArrayBuffer
  isResident(handle: Handle, start: number, end: number, fill: boolean): boolean
  fetch(handle: Handle, start: number, end: number): Promise<boolean>
  close(handle: Handle): void
  detach(buffer: ArrayBuffer): void
  places(): FilePlaces
  keep(max: number): void
  mapped(): [count: number, bytes: number]
  readSmall(path: string, target: Uint8Array, facts: Uint8Array): number
  openSmall(path: string, facts: Uint8Array): number
  readOpen(descriptor: number, target: Uint8Array, sizeBytes: number): number
  closeSmall(descriptor: number): void
  look(path: string, facts: Uint8Array): boolean
}

/** Bytes that one ArrayBuffer of the addon covers. */
const windowBytes = 2 ** 30

const addon = loadAddon<Addon>('mapped')

/** Which way files are read here: through the addon, or through its slower fallback where the addon was not built. */
export const mappedBy: 'addon' | 'fallback' = addon === undefined ? 'fallback' : 'addon'

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

  isResident(start: number, end: number, fill: boolean): boolean {
    return this.#addon.isResident(this.#handle, start, end, fill)
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

  ahead(ranges: Float64Array): void {
    this.#addon.ahead(this.#handle, new Uint8Array(ranges.buffer, ranges.byteOffset, ranges.byteLength))
  }

  readThrough(): void {
    this.#addon.readThrough(this.#handle)
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
export const openMapped: (path: string) => MappedFile | undefined =
  addon === undefined ? openFallback : openAddon

/**
 * The same for a file that is still being written to, and whose size stays: its time changes, and yet all threads share one
 * mapping. Bytes may be read once they are known to be written.
 */
export const openWritten: (path: string) => MappedFile | undefined =
  addon === undefined
    ? openFallback
    : (path) => {
        const opened = addon.openWritten(path)
        return opened === undefined ? undefined : new AddonFile(addon, opened)
      }

/**
 * The same for a file of which small places far apart are read: a read of the disk brings what is wanted, and nothing around it.
 * Who first maps a file in a process decides that.
 */
export const openScattered: (path: string) => MappedFile | undefined =
  addon === undefined
    ? openFallback
    : (path) => {
        const opened = addon.openScattered(path)
        return opened === undefined ? undefined : new AddonFile(addon, opened)
      }

/**
 * Gives an open file this size, with room on the disk for all of it, so that writing into it later cannot fail because the
 * disk is full. Throws the system's error. Without the addon, and on file systems that cannot, no room is kept.
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

/** Undefined without the addon. */
export const filePlaces: FilePlaces | undefined = addon?.places()

/** So many of the mapped files stay open, in the whole process, so that a server can send from them. */
export function keepOpen(max: number): void {
  addon?.keep(max)
}

/** Results of `readSmall` where it read nothing. */
export const unread = { missing: -1, elsewhere: -2, larger: -3 } as const

/**
 * Facts of a file from `readSmall`, except where it is `missing`. 64-bit numbers are in halves, as in the stamps of files.
 */
export class SmallFacts {
  readonly bytes: Uint8Array
  readonly #halves: Int32Array
  readonly #size: Float64Array

  constructor() {
    const memory = new ArrayBuffer(24)
    this.bytes = new Uint8Array(memory)
    this.#halves = new Int32Array(memory, 0, 4)
    this.#size = new Float64Array(memory, 16, 1)
  }

  get inodeLow(): number {
    return this.#halves[0]!
  }

  get inodeHigh(): number {
    return this.#halves[1]!
  }

  get modifiedLow(): number {
    return this.#halves[2]!
  }

  get modifiedHigh(): number {
    return this.#halves[3]!
  }

  get sizeBytes(): number {
    return this.#size[0]!
  }
}

/** Small files, read whole and without waiting for the disk. All throw on other failures of the disk. */
export interface SmallReads {
  /**
   * Reads all of the file at `path` into `target`. Its bytes, or a number of `unread`: there is no such file; it is not all
   * in memory, or that is not known; `target` is too small.
   */
  read(path: string, target: Uint8Array, facts: SmallFacts): number
  /** Opens the file at `path`: a descriptor for this thread, or `unread.missing`. */
  open(path: string, facts: SmallFacts): number
  /** The same as `read`, of a file that is open. */
  readOpen(descriptor: number, target: Uint8Array, sizeBytes: number): number
  close(descriptor: number): void
  /** Is there a file at `path`? */
  look(path: string, facts: SmallFacts): boolean
}

/** Undefined without the addon, because nothing else can read without waiting. */
export const smallReads: SmallReads | undefined =
  addon === undefined
    ? undefined
    : {
        read: (path, target, facts) => addon.readSmall(path, target, facts.bytes),
        open: (path, facts) => addon.openSmall(path, facts.bytes),
        readOpen: (descriptor, target, sizeBytes) => addon.readOpen(descriptor, target, sizeBytes),
        close: (descriptor) => addon.closeSmall(descriptor),
        look: (path, facts) => addon.look(path, facts.bytes),
      }
