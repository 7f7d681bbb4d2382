import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Disk, type OpenFile, systemDisk } from '../../../src/store/segments/disk.js'

const pageBytes = 4096

interface Known {
  readonly path: string
  /** Pages that were written since the last flush, as they were before. */
  readonly dirty: Map<number, Buffer>
  /** Size at the last flush. */
  sizeBytes: number
}

export type DiskCall =
  | 'create'
  | 'open'
  | 'resize'
  | 'write'
  | 'read'
  | 'sync'
  | 'rename'
  | 'remove'
  | 'syncFolder'

/**
 * Real files on a disk that may fail, and whose power may be cut: then each page, each size and each name that was not flushed is
 * as it was before, or as it is now, each by chance.
 */
export class LossyDisk implements Disk {
  /** Gives the code of an error for calls that are to fail. */
  fault: (call: DiskCall, path: string) => string | undefined = () => undefined
  /** Said to be free, instead of what is. */
  freeBytesStated: number | undefined
  readonly #open = new Map<OpenFile, Known>()
  /** Of files that were closed with pages that were not flushed. */
  readonly #closed: Known[] = []
  /** Names since the last flush of their folder: made (with no copy), or removed (with a copy of what was there). */
  readonly #names: { path: string; kept: string | undefined }[] = []
  #copies = 0
  #isCut = false

  #check(call: DiskCall, path: string): void {
    if (this.#isCut) throw Object.assign(new Error('EIO: no power'), { code: 'EIO', syscall: call })
    const code = this.fault(call, path)
    if (code !== undefined) throw Object.assign(new Error(`${code}: ${call}`), { code, syscall: call })
  }

  create(path: string, sizeBytes: number): OpenFile {
    this.#check('create', path)
    const file = systemDisk.create(path, sizeBytes)
    this.#names.push({ path, kept: undefined })
    this.#open.set(file, { path, dirty: new Map(), sizeBytes: 0 })
    return file
  }

  open(path: string): OpenFile {
    this.#check('open', path)
    const file = systemDisk.open(path)
    const before = this.#closed.findIndex((one) => one.path === path)
    const known = before < 0 ? undefined : this.#closed.splice(before, 1)[0]
    this.#open.set(file, known ?? { path, dirty: new Map(), sizeBytes: systemDisk.sizeOf(file) })
    return file
  }

  #known(file: OpenFile): Known {
    const known = this.#open.get(file)
    if (known === undefined) throw new Error('a descriptor was used that is not open')
    return known
  }

  resize(file: OpenFile, sizeBytes: number): void {
    this.#check('resize', this.#known(file).path)
    systemDisk.resize(file, sizeBytes)
  }

  sizeOf(file: OpenFile): number {
    return systemDisk.sizeOf(file)
  }

  write(file: OpenFile, bytes: Uint8Array, position: number): void {
    if (this.#isCut) this.#check('write', '')
    const { dirty, path } = this.#known(file)
    for (let page = Math.floor(position / pageBytes); page * pageBytes < position + bytes.length; page += 1) {
      if (dirty.has(page)) continue
      const before = Buffer.alloc(pageBytes)
      systemDisk.read(file, before, page * pageBytes)
      dirty.set(page, before)
    }
    const code = this.fault('write', path)
    // A write that fails has written a part.
    const written = code === undefined ? bytes : bytes.subarray(0, bytes.length >> 1)
    systemDisk.write(file, written, position)
    this.#check('write', path)
  }

  read(file: OpenFile, into: Uint8Array, position: number): number {
    this.#check('read', this.#known(file).path)
    return systemDisk.read(file, into, position)
  }

  async sync(file: OpenFile): Promise<void> {
    const known = this.#known(file)
    // What is written while the flush runs is not flushed.
    const pages = [...known.dirty.keys()]
    const sizeBytes = systemDisk.sizeOf(file)
    await new Promise((resolve) => setImmediate(resolve))
    this.#check('sync', known.path)
    for (const page of pages) known.dirty.delete(page)
    known.sizeBytes = sizeBytes
  }

  close(file: OpenFile): void {
    if (this.#isCut) return
    const known = this.#known(file)
    systemDisk.close(file)
    this.#open.delete(file)
    this.#closed.push(known)
  }

  rename(from: string, to: string): void {
    this.#check('rename', from)
    systemDisk.rename(from, to)
  }

  remove(path: string): void {
    this.#check('remove', path)
    if (!existsSync(path)) return
    this.#copies += 1
    const kept = `${dirname(dirname(path))}/removed-${this.#copies}`
    copyFileSync(path, kept)
    this.#names.push({ path, kept })
    systemDisk.remove(path)
  }

  list(folder: string): string[] {
    return systemDisk.list(folder)
  }

  async syncFolder(folder: string): Promise<void> {
    this.#check('syncFolder', folder)
    for (const { kept, path } of this.#names.splice(0)) {
      if (dirname(path) !== folder) this.#names.push({ kept, path })
      else if (kept !== undefined) rmSync(kept)
    }
  }

  freeBytes(folder: string): number {
    return this.freeBytesStated ?? systemDisk.freeBytes(folder)
  }

  /** Cuts the power. Nobody may use the disk after it, but a new one may be made for what is left. */
  cut(chance: () => number): void {
    this.#isCut = true
    for (const [file, known] of this.#open) {
      systemDisk.close(file)
      this.#closed.push(known)
    }
    this.#open.clear()
    for (const { path, dirty, sizeBytes } of this.#closed) {
      if (!existsSync(path)) continue
      const file = systemDisk.open(path)
      for (const [page, before] of dirty) {
        const size = systemDisk.sizeOf(file)
        const left = before.subarray(0, Math.max(0, size - page * pageBytes))
        if (chance() < 0.5) systemDisk.write(file, left, page * pageBytes)
      }
      if (systemDisk.sizeOf(file) > sizeBytes && dirty.size > 0 && chance() < 0.2) {
        systemDisk.resize(file, Math.max(sizeBytes, 1))
      }
      systemDisk.close(file)
    }
    for (const { path, kept } of this.#names.reverse()) {
      const undone = chance() < 0.5
      if (kept === undefined && undone) rmSync(path, { force: true })
      else if (kept !== undefined && undone && !existsSync(path)) renameSync(kept, path)
      else if (kept !== undefined) rmSync(kept, { force: true })
    }
  }
}
