import { join } from 'node:path'
import { fileStore } from '../client/node/file-store.js'
import { memoryStore, type ResumeStore } from '../client/resume-store.js'
import { userFolder } from './user-folders.js'

const lost = 'an upload that breaks off begins anew, and what is uploaded now is not remembered'

function say(why: string): void {
  process.stderr.write(`no memory of uploads: ${why}; ${lost}\n`)
}

/** The memory of uploads of this user: in a folder below XDG_STATE_HOME, in this process alone where that cannot be used. */
export function uploadMemory(): ResumeStore {
  const folder = userFolder('state')
  if (folder !== undefined) return forgiving(fileStore(join(folder, 'uploads')), say)
  say('this user has no home; XDG_STATE_HOME names another folder')
  return memoryStore()
}

/** Why a store of files failed: a fault of the file system, or a file of it that is damaged. Anything else is thrown on. */
function faultOf(error: unknown): string {
  if (error instanceof SyntaxError) return `a file of it is damaged (${error.message})`
  const { code, path, syscall } = (error ?? {}) as NodeJS.ErrnoException
  if (code === undefined || syscall === undefined) throw error
  return `${path ?? syscall}: ${code}`
}

/** What was deleted here, where the store below may still have it. */
const deleted = '\0'

/**
 * The same store, but a fault of it does not end the upload: what it does not take is remembered in this process, and `onFault`
 * hears of the first fault.
 */
export function forgiving(below: ResumeStore, onFault: (why: string) => void): ResumeStore {
  const own = new Map<string, string>()
  let isBroken = false
  const tried = async <Value>(work: () => Promise<Value>, otherwise: () => Value): Promise<Value> => {
    if (isBroken) return otherwise()
    try {
      return await work()
    } catch (error) {
      const why = faultOf(error)
      // Several calls may fail at once, and the first one has printed it.
      if (!isBroken) onFault(why)
      isBroken = true
      return otherwise()
    }
  }
  const kept = (key: string): string | undefined => {
    const value = own.get(key)
    return value === deleted ? undefined : value
  }
  return {
    async get(key) {
      if (own.has(key)) return kept(key)
      return tried(
        () => below.get(key),
        () => undefined,
      )
    },
    set: (key, value) =>
      tried(
        () => below.set(key, value),
        () => void own.set(key, value),
      ),
    delete: (key) =>
      tried(
        () => below.delete(key),
        () => void own.set(key, deleted),
      ),
    async getMany(keys) {
      const found = await tried(
        async () => new Map(await below.getMany?.(keys)),
        () => new Map<string, string>(),
      )
      for (const key of keys) {
        const value = kept(key)
        if (value !== undefined) found.set(key, value)
      }
      return found
    },
    setMany: (values) =>
      tried(
        async () => below.setMany?.(values),
        () => {
          for (const [key, value] of values) own.set(key, value)
        },
      ),
  }
}
