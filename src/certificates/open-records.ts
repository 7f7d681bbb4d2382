import { createHash } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder, readSmall } from '../store/folder.js'
import { replaceSecret } from '../store/secret-file.js'

/** Records that could not be removed, again and again, are forgotten beyond this number. */
const recordsMax = 200

/** A TXT record that was set for a challenge. */
export interface OpenRecord {
  readonly name: string
  readonly value: string
}

/**
 * TXT records that were set and not removed yet, one file for each: a process that is killed leaves them at the name server, and
 * the next attempt removes them. All methods throw the system's error.
 */
export class OpenRecords {
  constructor(private readonly folder: string) {}

  /** To be called before the record is set. */
  add(record: OpenRecord): void {
    makeFolder(this.folder)
    const names = this.#names()
    if (names.length >= recordsMax) for (const name of names) rmSync(join(this.folder, name), { force: true })
    replaceSecret(this.#file(record), JSON.stringify(record))
  }

  /** To be called after the record was removed. */
  remove(record: OpenRecord): void {
    rmSync(this.#file(record), { force: true })
  }

  all(): readonly OpenRecord[] {
    return this.#names().flatMap((name) => {
      if (!name.endsWith('.json')) return []
      return [JSON.parse(readSmall(join(this.folder, name))) as OpenRecord]
    })
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  }

  #file({ name, value }: OpenRecord): string {
    const digest = createHash('sha256').update(`${name} ${value}`).digest('hex')
    return join(this.folder, `${digest}.json`)
  }
}
