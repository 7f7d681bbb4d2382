import { type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { isMissing } from './blobs.js'
import { type Environment, openEnvironment } from './lmdb.js'
import { BrokenDatabase } from './lmdb-check.js'

/**
 * Checks the data file of an open LMDB environment, because LMDB maps the file. Reading a truncated part ends the process by a
 * signal. Writes to a removed or replaced file are lost at the next start. A check costs some microseconds.
 */
class OpenFile {
  readonly #path: string
  readonly #number: number
  #bytes = 0

  /** `folder`: of the environment, which is open. */
  constructor(folder: string) {
    this.#path = join(folder, 'data.mdb')
    const { ino, size } = statSync(this.#path)
    this.#number = ino
    this.#bytes = size
  }

  /** What has happened to the file since it was opened, in words for an operator; undefined: nothing but growth. */
  fault(): string | undefined {
    const found = this.#look()
    if (found === undefined) return 'it was removed while it was open'
    if (found.ino !== this.#number) return 'it was replaced while it was open'
    // LMDB never makes it shorter.
    if (found.size < this.#bytes)
      return `it was cut off while it was open: it has ${found.size} of ${this.#bytes} bytes`
    this.#bytes = found.size
    return undefined
  }

  #look(): Stats | undefined {
    try {
      return statSync(this.#path)
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }
}

/**
 * `openEnvironment` for what must not be written in vain: each `write` looks at the data file first, and throws `BrokenDatabase`
 * where it was cut off, removed or replaced. Nothing was done then.
 */
export function openGuarded(path: string): Environment {
  const environment = openEnvironment(path)
  const file = new OpenFile(path)
  return {
    ...environment,
    write(act) {
      const fault = file.fault()
      if (fault !== undefined) throw new BrokenDatabase(path, fault)
      return environment.write(act)
    },
  }
}
