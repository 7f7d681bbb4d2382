import { close, open, readv } from 'node:fs'
import { promisify } from 'node:util'

const openFile = promisify(open)
const closeFile = promisify(close)

interface OpenFile {
  readonly descriptor: Promise<number>
  users: number
}

/** Reads parts of files, and keeps the files that were read last open. */
export class OpenFiles {
  /** In order of use. */
  readonly #files = new Map<string, OpenFile>()

  /** At most `openMax` files stay open when nobody reads them. */
  constructor(private readonly openMax: number) {}

  /** Fills `parts` with what lies at `position` of a file. False where it has not so many bytes, or cannot be read. */
  async read(path: string, position: number, parts: readonly Uint8Array[]): Promise<boolean> {
    const file = this.#files.get(path) ?? { descriptor: openFile(path, 'r'), users: 0 }
    this.#files.delete(path)
    this.#files.set(path, file)
    file.users += 1
    try {
      const descriptor = await file.descriptor
      const wanted = parts.reduce((sum, part) => sum + part.length, 0)
      return (await readParts(descriptor, position, parts)) === wanted
    } catch {
      // Missing or unreadable: the caller ends the connection.
      if (this.#files.get(path) === file) this.#files.delete(path)
      return false
    } finally {
      file.users -= 1
      this.#trim()
    }
  }

  /** Closes what nobody reads; later reads open files again. */
  forget(): void {
    for (const [path, file] of this.#files) if (file.users === 0) this.#close(path, file)
  }

  #trim(): void {
    for (const [path, file] of this.#files) {
      if (this.#files.size <= this.openMax) return
      if (file.users === 0) this.#close(path, file)
    }
  }

  #close(path: string, file: OpenFile): void {
    this.#files.delete(path)
    file.descriptor.then((descriptor) => closeFile(descriptor)).catch(() => 'was never open')
  }
}

function readParts(descriptor: number, position: number, parts: readonly Uint8Array[]): Promise<number> {
  return new Promise((resolve, reject) => {
    readv(descriptor, parts, position, (error, bytes) => (error === null ? resolve(bytes) : reject(error)))
  })
}
