import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs'
import { promisify } from 'node:util'
import { allocate } from '../../../native/mapped/mapped.js'
import { makeFolder } from '../folder.js'
import { synced } from '../synced.js'

/** An open file, by its descriptor. */
export type OpenFile = number

/**
 * What segments and the durable log ask of a disk. A port, so that tests can lose what was not flushed, or fail anywhere. Every
 * call throws (or rejects with) the system's error where the disk refuses.
 */
export interface Disk {
  /** A new file, readable and writable by this user only, of this size, with room on the disk for all of it. */
  create(path: string, sizeBytes: number): OpenFile
  open(path: string): OpenFile
  /** Gives an open file another size, and keeps room for all of it where it grows. */
  resize(file: OpenFile, sizeBytes: number): void
  sizeOf(file: OpenFile): number
  /** All of `bytes` are with the kernel on return. */
  write(file: OpenFile, bytes: Uint8Array, position: number): void
  /** How many bytes could be read: fewer at the end of the file. */
  read(file: OpenFile, into: Uint8Array, position: number): number
  /** What was written before the call would survive a power cut. */
  sync(file: OpenFile): Promise<void>
  close(file: OpenFile): void
  rename(from: string, to: string): void
  remove(path: string): void
  /** Names in a folder; the folder is made where it is missing. */
  list(folder: string): string[]
  /** Names in a folder, as they are now, would survive a power cut. */
  syncFolder(folder: string): Promise<void>
  /** Bytes that this user may still write to the file system. */
  freeBytes(folder: string): number
}

const syncData = promisify(fdatasync)

function createFile(path: string, sizeBytes: number): OpenFile {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    allocate(file, sizeBytes)
    return file
  } catch (error) {
    closeSync(file)
    rmSync(path, { force: true })
    throw error
  }
}

/** The disk of this machine. */
export const systemDisk: Disk = {
  create: createFile,
  open: (path) => openSync(path, constants.O_RDWR),
  resize(file, sizeBytes) {
    if (fstatSync(file).size < sizeBytes) allocate(file, sizeBytes)
    else ftruncateSync(file, sizeBytes)
  },
  sizeOf: (file) => fstatSync(file).size,
  write(file, bytes, position) {
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(file, bytes, done, bytes.length - done, position + done)
    }
  },
  read(file, into, position) {
    let done = 0
    while (done < into.length) {
      const count = readSync(file, into, done, into.length - done, position + done)
      if (count === 0) break
      done += count
    }
    return done
  },
  sync: (file) => syncData(file),
  close: closeSync,
  rename: renameSync,
  remove: (path) => rmSync(path, { force: true }),
  list(folder) {
    makeFolder(folder)
    return readdirSync(folder)
  },
  syncFolder: synced,
  freeBytes(folder) {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  },
}
