import { constants, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

/** Whether a path, links followed, names a regular file. Opening a pipe can block for ever, and a device has no end. */
export function isRegularFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

/**
 * Opens a file to read, links followed; undefined where the path names something else: a pipe, a device, a folder. It never waits
 * for who writes to a pipe. Rejects with the system's error.
 */
export async function openRegular(path: string): Promise<FileHandle | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const found = await file.stat().catch(async (error: unknown) => {
    await file.close()
    throw error
  })
  if (found.isFile()) return file
  await file.close()
  return undefined
}

/**
 * What a file has, at most `bytesMax` of it, and one byte more where it has more; undefined where the path names no regular file.
 * Rejects with the system's error.
 */
export async function readRegular(path: string, bytesMax: number): Promise<Buffer | undefined> {
  const file = await openRegular(path)
  if (file === undefined) return undefined
  try {
    const { size } = await file.stat()
    const buffer = Buffer.allocUnsafeSlow(Math.min(size, bytesMax) + 1)
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    return buffer.subarray(0, length)
  } finally {
    await file.close()
  }
}
