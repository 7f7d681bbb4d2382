/**
 * Where an upload under way is remembered, so that it goes on after the process or the tab has ended. Values are texts of at most
 * some kilobytes; they hold signatures and payment authorizations, but no keys.
 */
export interface ResumeStore {
  get(key: string): Promise<string | undefined>
  set(key: string, value: string): Promise<void>
  delete(key: string): Promise<void>
  /** Many at once: for stores in which each question takes long. */
  getMany?(keys: readonly string[]): Promise<ReadonlyMap<string, string>>
  setMany?(values: ReadonlyMap<string, string>): Promise<void>
}

/** Remembers only as long as this program runs. */
export function memoryStore(): ResumeStore {
  const values = new Map<string, string>()
  return {
    get: async (key) => values.get(key),
    set: async (key, value) => void values.set(key, value),
    delete: async (key) => void values.delete(key),
  }
}

interface WebStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** Remembers in a browser's localStorage (or anything with its methods). */
export function webStore(storage: WebStorage, prefix = 'sluice:'): ResumeStore {
  return {
    get: async (key) => storage.getItem(prefix + key) ?? undefined,
    set: async (key, value) => storage.setItem(prefix + key, value),
    delete: async (key) => storage.removeItem(prefix + key),
  }
}
