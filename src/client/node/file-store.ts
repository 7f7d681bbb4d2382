import { createHash, randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ResumeStore } from '../resume-store.js'
import { nowMs } from '../timing.js'

/** What a key has that was deleted, where a file of many keys still has it. */
const deleted = '\0'

function nameOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

async function whereThere<Value>(work: Promise<Value>): Promise<Value | undefined> {
  try {
    return await work
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Remembers uploads in files of a folder, readable by their owner only. Each write is whole or not there. One key is one
 * file, named by its SHA-256; what is set together lies together, in a file `many-*` that never changes.
 */
class FileStore implements ResumeStore {
  /** Values by the names of keys, by file. */
  readonly #many = new Map<string, ReadonlyMap<string, string>>()
  #isListed = false

  constructor(private readonly folder: string) {}

  async get(key: string): Promise<string | undefined> {
    const name = nameOf(key)
    const own = await this.#alone(name)
    if (own === undefined && !this.#isListed) await this.#list()
    const value = own ?? this.#ofMany(name)
    return value === deleted ? undefined : value
  }

  set(key: string, value: string): Promise<void> {
    return this.#write(nameOf(key), value)
  }

  async delete(key: string): Promise<void> {
    const name = nameOf(key)
    if (!this.#isListed) await this.#list()
    if (this.#ofMany(name) === undefined) await rm(join(this.folder, name), { force: true })
    else await this.#write(name, deleted)
  }

  async getMany(keys: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const names = await this.#list()
    const found = new Map<string, string>()
    for (const key of keys) {
      const name = nameOf(key)
      const value = names.has(name) ? await this.#alone(name) : this.#ofMany(name)
      if (value !== undefined && value !== deleted) found.set(key, value)
    }
    return found
  }

  async setMany(values: ReadonlyMap<string, string>): Promise<void> {
    const content = Object.fromEntries([...values].map(([key, value]) => [nameOf(key), value]))
    const many = `many-${String(nowMs()).padStart(15, '0')}-${randomBytes(6).toString('hex')}`
    await this.#write(many, JSON.stringify(content))
    this.#many.set(many, new Map(Object.entries(content)))
    // What a key had alone is older, and would go before.
    const names = await this.#list()
    for (const name of Object.keys(content)) if (names.has(name)) await rm(join(this.folder, name))
  }

  #alone(name: string): Promise<string | undefined> {
    return whereThere(readFile(join(this.folder, name), 'utf8'))
  }

  /** What files of many keys have; the newest first. */
  #ofMany(name: string): string | undefined {
    for (const many of [...this.#many.keys()].sort().reverse()) {
      const value = this.#many.get(many)?.get(name)
      if (value !== undefined) return value
    }
    return undefined
  }

  /** Names of all files; those of many keys are read, each once. */
  async #list(): Promise<ReadonlySet<string>> {
    const names = (await whereThere(readdir(this.folder))) ?? []
    this.#isListed = true
    for (const name of names) {
      if (!name.startsWith('many-') || this.#many.has(name)) continue
      const text = (await this.#alone(name)) ?? '{}'
      this.#many.set(name, new Map(Object.entries(JSON.parse(text) as Record<string, string>)))
    }
    return new Set(names)
  }

  async #write(name: string, text: string): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const draft = join(this.folder, `.${name}.${randomBytes(6).toString('hex')}`)
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, join(this.folder, name))
  }
}

/** A store below a folder. */
export function fileStore(folder: string): ResumeStore {
  return new FileStore(folder)
}
