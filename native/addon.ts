import { createRequire } from 'node:module'

/** The addon of the folder `name` beside this file's source; undefined where it was not built for this machine. */
export function loadAddon<Addon>(name: string): Addon | undefined {
  const path = `../../native/${name}/build/${process.platform}-${process.arch}.node`
  try {
    return createRequire(import.meta.url)(path) as Addon
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'MODULE_NOT_FOUND' || code === 'ERR_DLOPEN_FAILED') return undefined
    throw error
  }
}
