import { loadAddon } from '../addon.js'

interface Addon {
  /** The system's error number, 0 for none. */
  keep(path: string): number
}

const addon = process.platform === 'linux' ? loadAddon<Addon>('crash') : undefined

/**
 * From now on a signal that ends this process for a fault of its own (SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE) adds a line to
 * the file `path`: the signal's name, and ` in ` with the path of the file that is mapped where the fault was, if one is. Says
 * why where it does not; then no line is ever added.
 */
export function keepCrashNote(path: string): string | undefined {
  if (addon === undefined) return 'native/crash was not built'
  const code = addon.keep(path)
  return code === 0 ? undefined : `${path} cannot be opened (error ${code})`
}
